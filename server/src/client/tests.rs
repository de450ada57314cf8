//! The client against a scripted server over real HTTP.

use serde_json::json;

use super::{
    scripted::{Answer, Scripted, Seen},
    *,
};

fn tools() -> Answer {
    Answer::Result(json!({ "resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": [
        { "name": "größe", "inputSchema": { "type": "object", "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" } } } },
    ] }))
}

fn done(text: &str) -> Value {
    json!({ "resultType": "complete", "content": [{ "type": "text", "text": text }], "isError": false })
}

fn task(status: &str) -> Value {
    json!({ "resultType": "complete", "taskId": "T1", "status": status, "ttlMs": 1000,
        "createdAt": "2026-09-01T08:00:00Z", "lastUpdatedAt": "2026-09-01T08:00:00Z" })
}

async fn call(server: &Scripted, arguments: Value) -> Result<Reply, ClientError> {
    let client = Client::new(&server.url, Some("tok")).unwrap();
    let tool = client.tool("größe").await?;
    let call = Call::new(tool, arguments.as_object().unwrap().clone());
    client.call(&call, &mut |_| {}).await
}

#[tokio::test]
async fn a_request_carries_its_whole_context() {
    let server = Scripted::start(|request| match request.method() {
        "tools/list" => tools(),
        _ => Answer::Result(done("x")),
    })
    .await;
    let reply = call(&server, json!({ "region": "eu" })).await.unwrap();
    assert!(matches!(reply, Reply::Complete(result) if result.content[0]["text"] == "x"));
    let request: &Seen = &server.of("tools/call")[0];
    assert_eq!(request.header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(request.header("mcp-method"), Some("tools/call"));
    assert_eq!(request.header("mcp-name"), Some("=?base64?Z3LDtsOfZQ==?="));
    assert_eq!(request.header("mcp-param-region"), Some("eu"));
    assert_eq!(request.header("authorization"), Some("Bearer tok"));
    assert_eq!(request.header("accept"), Some("application/json, text/event-stream"));
    let meta = &request.params()["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "tokkuri");
    let capabilities = &meta["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(capabilities["elicitation"], json!({ "form": {}, "url": {} }));
    assert_eq!(capabilities["extensions"], json!({ "io.modelcontextprotocol/tasks": {} }));
    assert_eq!(request.params()["arguments"], json!({ "region": "eu" }));
}

#[tokio::test]
async fn progress_on_the_stream_is_heard_before_the_result() {
    let server = Scripted::start(|request| match request.method() {
        "tools/list" => tools(),
        _ => {
            let token = request.params()["_meta"]["progressToken"].clone();
            let step = json!({ "jsonrpc": "2.0", "method": "notifications/progress",
                "params": { "progressToken": token, "progress": 1, "total": 2, "message": "half" } });
            Answer::Stream(vec![step], done("x"))
        }
    })
    .await;
    let client = Client::new(&server.url, None).unwrap();
    let call = Call::new(client.tool("größe").await.unwrap(), Map::new());
    let mut heard = Vec::new();
    let reply = client.call(&call, &mut |step| heard.push(step)).await.unwrap();
    assert!(matches!(reply, Reply::Complete(_)));
    assert_eq!(heard.len(), 1);
    assert_eq!(heard[0].message.as_deref(), Some("half"));
}

#[tokio::test]
async fn a_retry_brings_the_answers_and_the_state_unchanged_under_a_new_id() {
    let server = Scripted::start(|request| match request.method() {
        "tools/list" => tools(),
        _ if request.params().get("inputResponses").is_some() => Answer::Result(done("hello")),
        _ => Answer::Result(json!({ "resultType": "input_required", "requestState": "v1.x",
            "inputRequests": { "user": { "method": "elicitation/create", "params": {} } } })),
    })
    .await;
    let client = Client::new(&server.url, None).unwrap();
    let call = Call::new(client.tool("größe").await.unwrap(), Map::new());
    let Reply::InputRequired { questions, state } = client.call(&call, &mut |_| {}).await.unwrap() else {
        panic!("nothing was asked");
    };
    assert_eq!(questions["user"].method, "elicitation/create");
    let answers = json!({ "user": { "action": "decline" } });
    let call = call.retry(answers.as_object().unwrap().clone(), state);
    assert!(matches!(client.call(&call, &mut |_| {}).await.unwrap(), Reply::Complete(_)));
    let calls = server.of("tools/call");
    assert_eq!(calls[1].params()["requestState"], "v1.x");
    assert_eq!(calls[1].params()["inputResponses"], answers);
    assert_ne!(calls[0].body["id"], calls[1].body["id"]);
}

#[tokio::test]
async fn the_task_methods_name_their_task_in_body_and_header() {
    let server = Scripted::start(|request| match request.method() {
        "tasks/get" => Answer::Result(task("working")),
        _ => Answer::Result(json!({ "resultType": "complete" })),
    })
    .await;
    let client = Client::new(&server.url, None).unwrap();
    assert_eq!(client.task("T1").await.unwrap().status, TaskStatus::Working);
    client.answer("T1", Map::new()).await.unwrap();
    client.cancel("T1").await.unwrap();
    let methods: Vec<_> = server.seen().iter().map(|r| r.method().to_owned()).collect();
    assert_eq!(methods, ["tasks/get", "tasks/update", "tasks/cancel"]);
    for request in server.seen() {
        assert_eq!(request.header("mcp-name"), Some("T1"));
        assert_eq!(request.params()["taskId"], "T1");
    }
}

#[tokio::test]
async fn all_pages_of_the_list_are_read() {
    let server = Scripted::start(|request| {
        let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
        match request.params().get("cursor") {
            None => Answer::Result(json!({ "tools": [tool("a")], "nextCursor": "" })),
            Some(_) => Answer::Result(json!({ "tools": [tool("b")] })),
        }
    })
    .await;
    let client = Client::new(&server.url, None).unwrap();
    let names: Vec<_> = client.tools().await.unwrap().into_iter().map(|t| t.name).collect();
    assert_eq!(names, ["a", "b"]);
}

#[tokio::test]
async fn discovery_tells_whether_there_are_tasks() {
    let server = Scripted::start(|_| {
        Answer::Result(json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"],
            "capabilities": { "extensions": { "io.modelcontextprotocol/tasks": {} } } }))
    })
    .await;
    let client = Client::new(&server.url, None).unwrap();
    assert!(client.discover().await.unwrap().has_tasks());
}

#[tokio::test]
async fn every_failure_says_what_it_is_and_what_to_do() {
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}/mcp", listener.local_addr().unwrap())
    };
    let client = Client::new(&closed, None).unwrap();
    let line = client.tools().await.unwrap_err().to_string();
    assert!(line.contains("no server answers at http://127.0.0.1:"), "{line}");
    assert!(line.contains("tokkuri serve"), "{line}");

    for (answer, needle) in [
        (Answer::Raw(404, vec![], "nope"), "answered HTTP 404 without an MCP message; is /mcp the path"),
        (Answer::Raw(200, vec![("content-type", "application/json")], "<"), "without an MCP message"),
        (
            Answer::Raw(401, vec![("www-authenticate", "Bearer scope=\"mcp\"")], ""),
            "wants a valid token (Bearer scope=\"mcp\"); give one with --token",
        ),
        (Answer::Raw(403, vec![], ""), "does not allow this with the token shown"),
        (Answer::Raw(200, vec![("content-type", "text/event-stream")], "data: {\"id\""), "broke off"),
        (
            Answer::Error(
                400,
                json!({ "code": -32022, "message": "version", "data": { "supported": ["2025-11-25"] } }),
            ),
            "this client speaks 2026-07-28, the server [\"2025-11-25\"]",
        ),
        (
            Answer::Error(200, json!({ "code": -32602, "message": "no such thing" })),
            "refused tools/list: no such thing (code -32602)",
        ),
        (Answer::Result(json!({ "tools": 5 })), "is not what MCP 2026-07-28 says"),
        (Answer::Result(json!({ "tools": [] })), "it has none at all"),
        (tools(), "it has: größe"),
    ] {
        let shown = format!("{answer:?}");
        let server = Scripted::start(move |_| answer.clone()).await;
        let client = Client::new(&server.url, None).unwrap();
        let line = client.tool("hash").await.unwrap_err().to_string();
        assert!(line.contains(needle), "{shown}\n  said: {line}\n  want: {needle}");
    }
}

#[test]
fn an_address_that_is_none_is_refused_before_anything_is_sent() {
    for url in ["127.0.0.1:8080", "ftp://h/mcp", "mcp", "http://"] {
        let line = Client::new(url, None).unwrap_err().to_string();
        assert!(line.contains("give --url http://HOST:PORT/mcp"), "{url}: {line}");
    }
}
