//! Who may call over gRPC, and who may not.

use std::fs;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio_stream::StreamExt as _;
use tokkuri_server::cluster::Credentials;
use tokkuri_server::cluster::proto::peer_client::PeerClient;
use tokkuri_server::cluster::proto::{GetTaskRequest, ListNodesRequest, SignalRequest};
use tokkuri_server::config::KeyPair as Files;
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_types::StatusExt as _;

use super::admin::{admin, stranger, with_token};
use super::{NEVER, bed};

#[tokio::test]
async fn whoever_shows_no_token_or_another_one_is_refused() {
    let server = bed().setting("grpc.token", "s3cret").start();
    for (mut caller, reason) in [
        (stranger(&server), "TOKEN_MISSING"),
        (with_token(&server, "s3cre"), "TOKEN_WRONG"),
        (with_token(&server, "s3crets"), "TOKEN_WRONG"),
    ] {
        let refused = caller.list_nodes(ListNodesRequest {}).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unauthenticated);
        assert_eq!(refused.get_details_error_info().unwrap().reason, reason);
        // An unknown task is not told from a known one.
        let refused = caller.get_task(GetTaskRequest { id: NEVER.into(), ..Default::default() }).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unauthenticated);
    }
    let address = server.grpc().unwrap().to_string();
    let mut peer = PeerClient::new(Credentials::none().channel(&address).unwrap());
    assert_eq!(peer.signal(SignalRequest::default()).await.unwrap_err().code(), Code::Unauthenticated);
    assert!(with_token(&server, "s3cret").list_nodes(ListNodesRequest {}).await.is_ok());
    assert!(!server.log().contains("s3cret"));
}

#[tokio::test]
async fn a_listener_that_asks_nobody_shows_no_payloads() {
    let server = bed().start();
    let id = server.client().create("slow", serde_json::json!({"ms": 0})).await;
    let mut caller = stranger(&server);
    assert!(caller.get_task(GetTaskRequest { id: id.clone(), include_payloads: false }).await.is_ok());
    let refused = caller.get_task(GetTaskRequest { id, include_payloads: true }).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    assert!(refused.message().contains("grpc.token"), "{}", refused.message());
}

#[test]
fn a_server_that_strangers_would_reach_does_not_start() {
    for address in ["0.0.0.0:0", "[::]:0"] {
        let (code, said) = bed().grpc(address).refused();
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("grpc.listen") && said.contains("grpc.token") && said.contains("client_ca"), "{said}");
    }
    let server = bed().grpc("0.0.0.0:0").setting("grpc.token", "s3cret").start();
    assert!(server.grpc().is_some());
}

#[test]
fn it_can_be_off() {
    assert_eq!(bed().grpc("off").start().grpc(), None);
}

#[tokio::test]
async fn health_and_reflection_ask_for_no_token() {
    let server = bed().setting("grpc.token", "s3cret").start();
    let address = server.grpc().unwrap().to_string();
    let channel = Credentials::none().channel(&address).unwrap();
    let mut health = HealthClient::new(channel.clone());
    for service in ["", "tokkuri.v1.Admin", "tokkuri.v1.Peer"] {
        let answer = health.check(HealthCheckRequest { service: service.into() }).await.unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving, "{service}");
    }
    let ask = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let mut reflection = ServerReflectionClient::new(channel);
    let mut answers = reflection.server_reflection_info(tokio_stream::once(ask)).await.unwrap().into_inner();
    let answer = answers.next().await.unwrap().unwrap().message_response.unwrap();
    let MessageResponse::ListServicesResponse(listed) = answer else { panic!("{answer:?}") };
    let names: Vec<String> = listed.service.into_iter().map(|service| service.name).collect();
    for name in ["tokkuri.v1.Admin", "tokkuri.v1.Peer", "grpc.health.v1.Health"] {
        assert!(names.iter().any(|listed| listed == name), "{names:?}");
    }
}

#[tokio::test]
async fn no_web_page_reaches_it() {
    let server = bed().start();
    let url = format!("http://{}/tokkuri.v1.Admin/ListNodes", server.grpc().unwrap());
    let http = reqwest::Client::builder().no_proxy().http1_only().build().unwrap();
    let answer = http.post(url).header("content-type", "application/grpc").body(vec![0; 5]).send().await;
    assert!(answer.is_err(), "HTTP/1.1 is answered: {answer:?}");
}

/// An authority, as a file, and the certificates that it makes.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// Writes the authority's certificate, and one of its making for `127.0.0.1` with its key.
    fn write(&self, dir: &Path, name: &str) -> (std::path::PathBuf, Files) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let cert = params.signed_by(&key, &self.issuer).unwrap();
        let file = |suffix: &str, text: &str| {
            let path = dir.join(format!("{name}.{suffix}.pem"));
            fs::write(&path, text).unwrap();
            path
        };
        let files = Files { cert: file("cert", &cert.pem()), key: file("key", &key.serialize_pem()) };
        (file("ca", &self.pem), files)
    }
}

#[tokio::test]
async fn with_mutual_tls_only_certificates_of_the_right_authority_pass() {
    let bed = bed();
    let (ours, theirs) = (Authority::new(), Authority::new());
    let (ca, node) = ours.write(bed.dir(), "node");
    let (_, operator) = ours.write(bed.dir(), "operator");
    let (other_ca, impostor) = theirs.write(bed.dir(), "impostor");
    let server = bed
        .grpc("0.0.0.0:0")
        .setting("grpc.cert", node.cert.display())
        .setting("grpc.key", node.key.display())
        .setting("grpc.client_ca", ca.display())
        .start();
    let address = format!("127.0.0.1:{}", server.grpc().unwrap().port());
    let connect = |authority: &Path, own: Option<&Files>| {
        let credentials = Credentials::none().with_tls(&[authority], own).unwrap();
        tokkuri_server::cluster::proto::admin_client::AdminClient::new(credentials.channel(&address).unwrap())
    };
    let mut caller = connect(&ca, Some(&operator));
    caller.list_nodes(ListNodesRequest {}).await.unwrap();
    let id = server.client().create("slow", serde_json::json!({"ms": 0})).await;
    let task = caller.get_task(GetTaskRequest { id, include_payloads: true }).await.unwrap().into_inner();
    assert!(task.payloads.is_some(), "a certificate is as good as a token");

    for (what, authority, own) in [
        ("a certificate of another authority", &ca, Some(&impostor)),
        ("no certificate", &ca, None),
        ("a server that is not trusted", &other_ca, Some(&operator)),
    ] {
        assert!(connect(authority, own).list_nodes(ListNodesRequest {}).await.is_err(), "{what}");
    }
    assert!(admin(&server, &Credentials::none()).list_nodes(ListNodesRequest {}).await.is_err(), "plain text");
}

#[test]
fn files_that_are_none_are_named_with_their_setting() {
    let authority = Authority::new();
    for (setting, file) in
        [("grpc.client_ca", "other.key.pem"), ("grpc.cert", "missing.pem"), ("grpc.key", "node.cert.pem")]
    {
        let bed = bed();
        let (ca, node) = authority.write(bed.dir(), "node");
        authority.write(bed.dir(), "other");
        let wrong = bed.dir().join(file);
        let (code, said) = bed
            .setting("grpc.cert", node.cert.display())
            .setting("grpc.key", node.key.display())
            .setting("grpc.client_ca", ca.display())
            .setting(setting, wrong.display())
            .refused();
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(setting) && said.contains(file), "{setting}: {said}");
    }
}
