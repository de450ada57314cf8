//! What is too much is refused with a clear error, and nothing is lost by it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokkuri_tests::harness::client::accept;
use tokkuri_tests::harness::raw::Connection;
use tokkuri_tests::harness::{DEADLINE, Prepared, Server};

use super::{NEVER, bed};

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!("x"), |inner, _| json!({ "a": inner }))
}

fn good(server: &Server) -> Prepared {
    server.client().prepare("tasks/get", json!({"taskId": NEVER})).id(41)
}

fn message_of(error: &Value) -> &str {
    error["message"].as_str().expect("a message")
}

#[tokio::test]
async fn a_body_that_is_nested_too_deeply_is_refused_with_its_id() {
    let server = bed().setting("server.max_depth", 20).start();
    let client = server.client();
    // The message, its params, and arguments: three levels before the first of these.
    let call = |depth| client.prepare("tools/call", json!({"name": "whoami", "arguments": nested(depth)})).id(7);
    call(18).send().await.task_id();
    let reply = call(19).send().await;
    assert!(message_of(reply.refused(400, -32600)).contains("server.max_depth"), "{}", reply.body);
    assert_eq!(reply.message["id"], 7);
}

#[tokio::test]
async fn bodies_of_any_depth_harm_nothing() {
    let server = bed().setting("server.max_body_bytes", 8_000_000).start();
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        for depth in [127_usize, 200, 100_000] {
            let deep = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            let text = good(&server).body.to_string().replace(&format!("\"{NEVER}\""), &deep);
            let reply = good(&server).bytes(text).send().await;
            reply.refused(400, -32600);
            let reply = good(&server).unjudged().bytes(open.repeat(depth)).send().await;
            reply.refused(400, -32700);
        }
    }
    good(&server).send().await.refused(200, -32602);
}

#[tokio::test]
async fn an_answer_that_is_too_deep_or_too_large_leaves_its_question_outstanding() {
    let server = bed().setting("tasks.max_argument_bytes", 2_000).start();
    let client = server.client();
    let id = client.create("ask", json!({"message": "?"})).await;
    client.wait_questions(&id, &["ask"]).await;
    let name = |name: Value| json!({"ask": accept(json!({"name": name, "age": 1}))});
    client.task_update(&id, name(nested(100))).await.refused(400, -32600);
    let reply = client.task_update(&id, name("x".repeat(3_000).into())).await;
    assert!(message_of(reply.refused(200, -32602)).contains("tasks.max_argument_bytes"), "{}", reply.body);
    assert_eq!(client.task_get(&id).await.questions(), ["ask"]);
    client.task_update(&id, name("Ada".into())).await.acknowledged();
    assert_eq!(client.wait_end(&id).await.task_text(), "hello Ada");
}

#[tokio::test]
async fn arguments_that_are_too_large_make_no_task_and_take_no_place() {
    let server = bed().setting("tasks.max_argument_bytes", 2_000).setting("tasks.max_per_principal", 1).start();
    let client = server.client();
    let call = |bytes: usize| client.tool("ask", json!({"message": "x".repeat(bytes)}));
    for _ in 0..3 {
        let reply = call(2_000).send().await;
        assert!(message_of(reply.refused(200, -32602)).contains("tasks.max_argument_bytes"), "{}", reply.body);
    }
    call(1_900).send().await.task_id();
}

#[tokio::test]
async fn a_head_that_is_too_large_is_told_so() {
    let server = bed().setting("server.max_header_bytes", 16_384).setting("server.max_headers", 50).start();
    let with = |n: usize, bytes: usize| {
        (0..n).fold(good(&server), |request, i| request.header(&format!("x-{i}"), &"v".repeat(bytes)))
    };
    for (request, status) in [(with(1, 8_000), 200), (with(1, 20_000), 431), (with(30, 10), 200), (with(60, 10), 431)] {
        let reply = Connection::open(server.http()).await.exchange(&request.to_http()).await;
        assert_eq!(reply.status, status, "{}", reply.text());
    }
}

#[tokio::test]
async fn a_connection_too_many_is_told_so_and_there_is_room_again_once_one_ends() {
    let server = bed().setting("server.max_connections", 3).start();
    let mut open = Vec::new();
    for _ in 0..3 {
        let mut connection = Connection::open(server.http()).await;
        assert_eq!(connection.exchange(&good(&server).to_http()).await.status, 200);
        open.push(connection);
    }
    let mut further = Connection::open(server.http()).await;
    let reply = further.exchange(&good(&server).to_http()).await;
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")), "{}", reply.text());
    assert!(message_of(&reply.message()["error"]).contains("server.max_connections"));
    assert_eq!(open[0].exchange(&good(&server).to_http()).await.status, 200, "who is in stays in");
    open.pop();
    let start = Instant::now();
    loop {
        let reply = Connection::open(server.http()).await.exchange(&good(&server).to_http()).await;
        if reply.status == 200 {
            break;
        }
        assert!(start.elapsed() < DEADLINE, "no room again");
    }
}

/// Writes `bytes` one after another, `every` so often, until the server closes the connection; how long that took.
async fn dribble(server: &Server, bytes: &[u8], every: Duration) -> (Duration, String) {
    let (mut read, mut write) = TcpStream::connect(server.http()).await.expect("connect").into_split();
    let start = Instant::now();
    let mut answer = Vec::new();
    let writing = async {
        for byte in bytes {
            if write.write_all(&[*byte]).await.is_err() {
                break;
            }
            tokio::time::sleep(every).await;
        }
        std::future::pending::<()>().await;
    };
    let reading = async {
        // A reset is an end as well.
        let _ = read.read_to_end(&mut answer).await;
    };
    tokio::select! {
        () = writing => {}
        ended = tokio::time::timeout(DEADLINE, reading) => ended.expect("the server gives up"),
    }
    (start.elapsed(), String::from_utf8_lossy(&answer).into_owned())
}

#[tokio::test]
async fn who_keeps_silent_or_dribbles_is_not_waited_for() {
    let server = bed()
        .setting("server.header_timeout_ms", 500)
        .setting("server.idle_timeout_ms", 1_500)
        .setting("server.request_timeout_ms", 1_000)
        .start();
    let request = good(&server).to_http();
    let head = request.windows(4).position(|it| it == b"\r\n\r\n").expect("a head") + 4;
    let slowly = Duration::from_millis(50);
    let (silent, dribbled, body) =
        tokio::join!(dribble(&server, b"", slowly), dribble(&server, &request, slowly), async {
            let mut connection = Connection::open(server.http()).await;
            let start = Instant::now();
            connection.write(&request[..head + 1]).await;
            let reply = connection.read_response().await;
            (start.elapsed(), reply)
        },);
    let about = |took: Duration, ms: u64| {
        assert!(
            took >= Duration::from_millis(ms * 9 / 10) && took < Duration::from_millis(ms) * 8,
            "{took:?} for {ms}"
        );
    };
    about(silent.0, 500);
    about(dribbled.0, 500);
    assert_eq!((silent.1, dribbled.1), (String::new(), String::new()));
    about(body.0, 1_000);
    assert_eq!((body.1.status, &body.1.message()["error"]["code"]), (408, &json!(-32600)), "{}", body.1.text());

    // An idle connection has longer, and a request that takes its time is waited for.
    let mut connection = Connection::open(server.http()).await;
    connection.exchange(&request).await;
    tokio::time::sleep(Duration::from_millis(800)).await;
    assert_eq!(connection.exchange(&request).await.status, 200);
    let inline = server.client().declaring(json!({})).tool("slow", json!({"ms": 3_000})).to_http();
    assert_eq!(connection.exchange(&inline).await.status, 200);
}

#[tokio::test]
async fn who_does_not_read_the_answer_is_given_up() {
    let server = bed().setting("server.write_timeout_ms", 500).setting("server.max_connections", 1).start();
    let request = server.client().declaring(json!({})).tool("big", json!({"bytes": 4_000_000})).to_http();
    let mut stream = TcpStream::connect(server.http()).await.expect("connect");
    for _ in 0..8 {
        stream.write_all(&request).await.expect("write");
    }
    // Its place is free again although it is still there.
    let start = Instant::now();
    loop {
        let reply = Connection::open(server.http()).await.exchange(&good(&server).to_http()).await;
        if reply.status == 200 {
            break;
        }
        assert!(start.elapsed() < DEADLINE, "it is still waited for");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    drop(stream);
}

#[tokio::test]
async fn what_the_long_way_cannot_read_is_refused_as_json_rpc_with_its_id() {
    let server = bed().start();
    let client = server.client();
    let list = client.prepare("tools/list", json!({})).id(41);
    for id in ["123456789012345678901234567890", "9223372036854775808", r#""\ud800""#] {
        let text = list.body.to_string().replace("\"id\":41", &format!("\"id\":{id}"));
        let reply = list.clone().unjudged().bytes(text).send().await;
        assert_eq!((reply.status, &reply.message["error"]["code"]), (400, &json!(-32600)), "{id}: {}", reply.body);
        assert_eq!(reply.raw(&["id"]), id);
    }
    for cursor in [r#""\ud800""#, "1e999"] {
        let text = list.body.to_string().replacen("\"_meta\"", &format!("\"cursor\":{cursor},\"_meta\""), 1);
        let reply = list.clone().bytes(text).send().await;
        assert_eq!(
            (reply.message["id"].clone(), &reply.error()["code"]),
            (json!(41), &json!(-32602)),
            "{}",
            reply.body
        );
    }
    list.send().await.result();
}

/// Whoever asks for a large result and does not read it costs a connection, not another copy of the result.
#[tokio::test]
async fn a_large_result_that_nobody_reads_is_there_once() {
    const RESULT: usize = 4_000_000;
    const READERS: usize = 100;
    let server = bed().start();
    let client = server.client();
    let id = client.create("big", json!({"bytes": RESULT})).await;
    client.wait_end(&id).await;
    // It has been read once before it is looked at what more of it there is.
    server.near().task_get(&id).await;
    let before = server.resident_kib();
    let get = client.prepare("tasks/get", json!({"taskId": id})).to_http();
    let mut connections = Vec::new();
    for _ in 0..READERS {
        let mut connection = Connection::open_narrow(server.http()).await;
        connection.write(&get).await;
        connection.read_head(200).await;
        connections.push(connection);
    }
    let grown = server.resident_kib().saturating_sub(before);
    eprintln!("{grown} KiB for {READERS} that do not read {RESULT} bytes");
    assert!(grown < 48 << 10, "{grown} KiB for {READERS} answers of {RESULT} bytes that nobody reads");
    let reply = client.task_get(&id).await;
    assert_eq!(reply.task_text().len(), RESULT);
    assert_eq!(reply.headers["content-length"], reply.body.len().to_string());
}
