//! Results come back byte for byte, large and odd ones too.

use serde_json::json;

use super::bed;

#[tokio::test]
async fn odd_values_come_back_byte_for_byte() {
    let server = bed().start();
    let client = server.client();
    let id = client.create("nul", json!({})).await;
    let ended = client.wait_status(&id, "completed").await;
    let structured = ended.raw(&["result", "result", "structuredContent"]);
    assert!(has_lone_surrogate(structured), "an escaped lone surrogate: {structured}");
    assert!(structured.contains("1e300"), "1e300 as it was written: {structured}");
    let digits = structured.split(|c: char| !c.is_ascii_digit()).map(str::len).max();
    assert_eq!(digits, Some(30), "a 30-digit integer, every digit of it: {structured}");
    let text = ended.result()["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains('\0'), "U+0000 in {text:?}");
    assert_eq!(client.task_get(&id).await.raw(&["result"]), ended.raw(&["result"]));
}

#[tokio::test]
async fn a_large_result_comes_back_whole() {
    let server = bed().start();
    let client = server.client();
    for bytes in [0, 1, 65_536, 3 << 20] {
        let id = client.create("big", json!({"bytes": bytes})).await;
        assert_eq!(client.wait_end(&id).await.task_text().len(), bytes);
    }
}

#[tokio::test]
async fn text_of_any_script_survives_the_way_in_and_out() {
    let server = bed().start();
    let client = server.client();
    for name in ["Ada", "Åsa Ö", "東京", "a\"b\\c\n\t", "\u{0}", "👩‍🚀", "\u{2028}\u{FEFF}"] {
        let id = client.create("ask", json!({"message": name})).await;
        let asked = client.wait_questions(&id, &["ask"]).await;
        assert_eq!(asked.result()["inputRequests"]["ask"]["params"]["message"], name);
        client.task_update(&id, json!({"ask": {"action": "accept", "content": {"name": name}}})).await.acknowledged();
        assert_eq!(client.wait_end(&id).await.task_text(), format!("hello {name}"));
    }
}

fn has_lone_surrogate(json: &str) -> bool {
    let units: Vec<u16> = json
        .match_indices("\\u")
        .filter_map(|(at, _)| u16::from_str_radix(json.get(at + 2..at + 6)?, 16).ok())
        .collect();
    char::decode_utf16(units).any(|decoded| decoded.is_err())
}
