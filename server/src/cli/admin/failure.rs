//! Calls, and what is said when they fail: what happened, and what to do next.

use tonic::{Code, Response, Status};
use tonic_types::StatusExt as _;

use super::reach::Reach;
use crate::cli::{Exit, Stop};
use crate::cluster::proto::admin_client::AdminClient;
use crate::cluster::{MAX_MESSAGE_BYTES, Shown, with_causes};

/// One node, to be called.
pub(super) struct Caller {
    client: AdminClient<Shown>,
    address: String,
    tls: bool,
}

impl Caller {
    pub(super) fn new(reach: &Reach) -> Result<Self, Stop> {
        let client = AdminClient::new(reach.channel()?).max_decoding_message_size(MAX_MESSAGE_BYTES);
        Ok(Self { client, address: reach.grpc.clone(), tls: reach.ca.is_some() })
    }

    /// One call.
    pub(super) async fn call<T>(
        &mut self,
        call: impl AsyncFnOnce(&mut AdminClient<Shown>) -> Result<Response<T>, Status>,
    ) -> Result<T, Stop> {
        match call(&mut self.client).await {
            Ok(answer) => Ok(answer.into_inner()),
            Err(status) => Err(self.explain(&status)),
        }
    }

    /// What a failed call means to whoever made it.
    pub(super) fn explain(&self, status: &Status) -> Stop {
        let address = &self.address;
        if let Some(info) = status.get_details_error_info() {
            let next = match info.reason.as_str() {
                "TOKEN_MISSING" => {
                    return Stop::new(
                        Exit::Refused,
                        format!(
                            "{address} wants a token: give it as TOKKURI_GRPC_TOKEN or --token (grpc.token of the server)"
                        ),
                    );
                }
                "TOKEN_WRONG" => {
                    return Stop::new(
                        Exit::Refused,
                        format!("{address} does not know this token: give the one of grpc.token there"),
                    );
                }
                "NO_SUCH_TASK" => "; `tokkuri admin tasks` lists those there are",
                "NODE_NOT_ALIVE" => "; `tokkuri admin nodes` shows those that are",
                "STORE_UNAVAILABLE" => "; try again",
                _ => "",
            };
            return Stop::new(Exit::Refused, format!("{}{next}", status.message()));
        }
        match status.code() {
            Code::Unavailable => Stop::new(Exit::Unreachable, self.unreachable(status)),
            Code::Unimplemented => Stop::new(
                Exit::Refused,
                format!(
                    "what listens at {address} is no tokkuri that can do this: is it the gRPC listener, and as new as this command?"
                ),
            ),
            code => Stop::new(self.exit(code), format!("{address}: {code}: {}", reason(status))),
        }
    }

    fn unreachable(&self, status: &Status) -> String {
        let (address, reason) = (&self.address, reason(status));
        let hint = match (self.tls, reason.contains("refused"), reason.contains("ertificate")) {
            (true, _, true) => {
                "the certificates do not fit: --ca is the authority of the node's, --cert and --key are what it accepts"
            }
            (_, true, _) => {
                "start `tokkuri serve` there, or say with --grpc where a node listens for gRPC (its first line says grpc=…)"
            }
            (false, false, _) => "if it speaks TLS, give --ca (and --cert and --key)",
            (true, false, false) => "if it speaks no TLS, leave --ca out",
        };
        format!("{address} cannot be reached ({reason}): {hint}")
    }

    const fn exit(&self, code: Code) -> Exit {
        match code {
            Code::Unknown | Code::Internal | Code::DeadlineExceeded | Code::Cancelled | Code::DataLoss => {
                Exit::Unreachable
            }
            _ => Exit::Refused,
        }
    }
}

fn reason(status: &Status) -> String {
    match std::error::Error::source(status) {
        Some(source) => with_causes(source),
        None => status.message().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        reach: Reach,
    }

    fn caller() -> Caller {
        Caller::new(&Cli::parse_from(["t", "--grpc", "127.0.0.1:1"]).reach).unwrap()
    }

    #[tokio::test]
    async fn a_node_that_is_not_there_is_told_with_what_to_do() {
        let error = caller().call(async |it| it.prune(crate::cluster::proto::PruneRequest {}).await).await.unwrap_err();
        let text = error.to_string();
        assert!(text.contains("127.0.0.1:1 cannot be reached") && text.contains("--grpc"), "{text}");
        assert_eq!(Exit::of(&error.into()), Exit::Unreachable);
    }

    #[tokio::test]
    async fn what_a_server_says_is_passed_on() {
        use crate::cluster::proto::GetTaskRequest;
        let _ = GetTaskRequest::default();
        let status = Status::unimplemented("");
        assert_eq!(Exit::of(&caller().explain(&status).into()), Exit::Refused);
        let mut details = tonic_types::ErrorDetails::new();
        details.set_error_info("TOKEN_MISSING", "tokkuri", std::collections::HashMap::new());
        let status = Status::with_error_details(Code::Unauthenticated, "send it", details);
        let stop = caller().explain(&status);
        assert!(stop.to_string().contains("TOKKURI_GRPC_TOKEN"), "{stop}");
        assert_eq!(Exit::of(&stop.into()), Exit::Refused);
    }
}
