//! One client over standard input and output.
//!
//! rmcp speaks with it, but for `subscriptions/listen` with `taskIds`, a filter that rmcp drops: those requests are taken out of
//! its input and answered as over HTTP, by the same streams. Each of their messages is a line of the output, between rmcp's. The
//! other filters of such a listen go to rmcp under an id of our own, and what comes back under it is spliced in.

mod listens;

use std::io;
use std::sync::Arc;

use rmcp::ServerHandler;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, BufReader};
use tokio_util::task::TaskTracker;

use self::listens::{Listens, Route};
use crate::mcp::handler::Handler;
use crate::mcp::listen::Listening;

/// What lies between rmcp and the client, each way.
const BUFFER: usize = 64 << 10;
/// The longest line that is looked at. Longer ones are rmcp's to refuse, which is what it does from here on.
const LONGEST_LINE: u64 = 16 << 20;

/// Serves one client, in whichever era it speaks, until it closes its end. Streams of tasks go on in `streams`, until the client
/// has gone or the server stops.
///
/// # Errors
/// If the client does not speak MCP.
pub(crate) async fn serve<H: ServerHandler>(
    handler: Handler<H>,
    listening: Arc<Listening>,
    streams: TaskTracker,
    input: impl AsyncRead + Send + Unpin,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> io::Result<()> {
    let (ours, theirs) = tokio::io::duplex(BUFFER);
    let (from_rmcp, to_rmcp) = tokio::io::split(ours);
    let listens = Listens::new(handler.clone(), listening, streams, Box::new(output), Box::new(to_rmcp))?;
    let rmcp = async {
        match rmcp::serve_server(handler, tokio::io::split(theirs)).await {
            Ok(serving) => serving.waiting().await.map(|_| ()).map_err(io::Error::other),
            // A client that closes its end before it said anything wanted nothing.
            Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(io::Error::other(error)),
        }
    };
    let served = async { tokio::join!(rmcp, from_rmcp_to_client(from_rmcp, &listens)).0 };
    let reading = async {
        from_client(input, &listens).await;
        listens.end().await;
        // rmcp sees that its input has ended, and comes to an end by itself.
        std::future::pending().await
    };
    tokio::select! {
        served = served => served,
        () = reading => unreachable!("it never ends"),
    }
}

/// Reads what the client says, line by line, until it says no more.
async fn from_client<H: ServerHandler>(input: impl AsyncRead + Unpin, listens: &Arc<Listens<H>>) {
    let mut input = BufReader::new(input);
    let (mut line, mut begins) = (Vec::new(), true);
    loop {
        line.clear();
        match (&mut input).take(LONGEST_LINE).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let ends = line.ends_with(b"\n");
        let is_ours = begins && ends && listens.take(&line);
        begins = ends;
        if !is_ours && listens.tell_rmcp(&line).await.is_err() {
            return;
        }
    }
}

/// Passes on what rmcp says, line by line, until it says no more.
async fn from_rmcp_to_client<H: ServerHandler>(from_rmcp: impl AsyncRead + Unpin, listens: &Arc<Listens<H>>) {
    let mut from_rmcp = BufReader::new(from_rmcp);
    let mut line = Vec::new();
    while matches!(from_rmcp.read_until(b'\n', &mut line).await, Ok(1..)) {
        match listens.route(&line) {
            Route::Client => listens.tell_client(&line).await,
            Route::Stream(stream) => {
                let event = [b"data: ", &*line, b"\n"].concat();
                // A stream that has ended since does not want it any more.
                let _ = stream.send(event.into()).await;
            }
            Route::Nowhere => {}
        }
        line.clear();
    }
}
