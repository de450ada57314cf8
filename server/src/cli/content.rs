//! A tool's result on standard output: text as it is, everything else as something a person can read.

use std::io::{self, Write};

use serde_json::Value;

use super::show::printable;
use crate::client::CallResult;

/// Prints a result; `terminal` takes control characters out of it.
pub(crate) fn print(out: &mut dyn Write, result: &CallResult, terminal: bool) -> io::Result<()> {
    let mut said = false;
    for item in &result.content {
        let text = readable(item);
        let text = if terminal { printable(&text) } else { text };
        out.write_all(text.as_bytes())?;
        if !text.ends_with('\n') {
            out.write_all(b"\n")?;
        }
        said = true;
    }
    // Servers repeat structured content as text (MCP asks them to); alone it is the result.
    if let (false, Some(structured)) = (said, &result.structured_content) {
        serde_json::to_writer_pretty(&mut *out, structured)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

fn readable(item: &Value) -> String {
    let text = |key: &str| item.get(key).and_then(Value::as_str);
    match text("type") {
        Some("text") => text("text").unwrap_or_default().to_owned(),
        Some(kind @ ("image" | "audio")) => {
            format!("[{kind} {}, {}]", text("mimeType").unwrap_or("of unknown type"), size(text("data")))
        }
        Some("resource_link") => {
            format!("[{} <{}>]", text("name").unwrap_or("resource"), text("uri").unwrap_or_default())
        }
        Some("resource") => {
            let resource = item.get("resource").unwrap_or(&Value::Null);
            let field = |key: &str| resource.get(key).and_then(Value::as_str);
            match field("text") {
                Some(text) => text.to_owned(),
                None => format!("[resource <{}>, {}]", field("uri").unwrap_or_default(), size(field("blob"))),
            }
        }
        _ => item.to_string(),
    }
}

/// The size of base64 data once decoded.
fn size(base64: Option<&str>) -> String {
    let digits = base64.unwrap_or_default().trim_end_matches('=').len();
    format!("{} bytes", digits * 3 / 4)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn printed(result: Value, terminal: bool) -> String {
        let mut out = Vec::new();
        let result = serde_json::from_value(result).unwrap();
        print(&mut out, &result, terminal).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_kind_of_content_reads_well() {
        let content = json!({ "content": [
            { "type": "text", "text": "plain" },
            { "type": "image", "mimeType": "image/png", "data": "AAAA" },
            { "type": "audio", "mimeType": "audio/wav", "data": "AAA=" },
            { "type": "resource_link", "name": "log", "uri": "file:///log" },
            { "type": "resource", "resource": { "uri": "file:///a", "text": "inside\n" } },
            { "type": "resource", "resource": { "uri": "file:///b", "blob": "AA==" } },
        ], "structuredContent": { "not": "shown" } });
        assert_eq!(
            printed(content, false),
            "plain\n[image image/png, 3 bytes]\n[audio audio/wav, 2 bytes]\n[log <file:///log>]\ninside\n\
             [resource <file:///b>, 1 bytes]\n"
        );
    }

    #[test]
    fn structured_content_alone_is_the_result() {
        let result = json!({ "content": [], "structuredContent": { "n": 3 } });
        assert_eq!(printed(result, false), "{\n  \"n\": 3\n}\n");
    }

    #[test]
    fn a_pipe_gets_the_text_unchanged_and_a_terminal_gets_no_escapes() {
        let result = json!({ "content": [{ "type": "text", "text": "\u{1b}[2J" }] });
        assert_eq!(printed(result.clone(), false), "\u{1b}[2J\n");
        assert_eq!(printed(result, true), "\u{fffd}[2J\n");
    }
}
