//! What goes around a request: `_meta` and the headers that repeat it (MCP 2026-07-28, Streamable HTTP, request
//! metadata).

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use serde_json::{Map, Value, json};

use super::{ClientError, PROTOCOL_VERSION, TASKS_EXTENSION};

/// The `_meta` of a request; with `progress_token` the server may report progress on the request's own stream, with
/// `tasks` it may answer with a task.
pub(super) fn meta(progress_token: Option<u64>, tasks: bool) -> Value {
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": PROTOCOL_VERSION,
        "io.modelcontextprotocol/clientInfo": {
            "name": "tokkuri",
            "version": env!("CARGO_PKG_VERSION"),
        },
        "io.modelcontextprotocol/clientCapabilities": {
            "elicitation": { "form": {}, "url": {} },
        },
    });
    if tasks {
        meta["io.modelcontextprotocol/clientCapabilities"]["extensions"] = json!({ TASKS_EXTENSION: {} });
    }
    if let Some(token) = progress_token {
        meta["progressToken"] = json!(token);
    }
    meta
}

/// The headers of a request; `name` is the tool's name or the task's id.
pub(super) fn headers(method: &'static str, name: Option<&str>) -> Result<HeaderMap, ClientError> {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(HeaderName::from_static("mcp-protocol-version"), HeaderValue::from_static(PROTOCOL_VERSION));
    headers.insert(HeaderName::from_static("mcp-method"), HeaderValue::from_static(method));
    if let Some(name) = name {
        headers.insert(HeaderName::from_static("mcp-name"), header_value(name));
    }
    Ok(headers)
}

/// Adds `Mcp-Param-X` for every argument whose schema carries `"x-mcp-header": "X"`.
///
/// Only annotations reachable through `properties` count, and only on strings, integers and booleans; an argument
/// that is absent or null has no header.
///
/// # Errors
/// [`ClientError::Unexpected`] if an annotation is no header name: such a tool cannot be called.
pub(super) fn mirror_arguments(
    headers: &mut HeaderMap,
    schema: &Map<String, Value>,
    arguments: &Map<String, Value>,
) -> Result<(), ClientError> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Ok(());
    };
    for (key, property) in properties {
        let Some(value) = arguments.get(key) else {
            continue;
        };
        if let Some(annotation) = property.get("x-mcp-header").and_then(Value::as_str) {
            let name = HeaderName::from_bytes(format!("mcp-param-{annotation}").as_bytes()).map_err(|_| {
                ClientError::Unexpected {
                    method: "tools/list",
                    what: format!("{annotation:?} of argument {key:?} is no header name"),
                }
            })?;
            let text = match value {
                Value::String(text) => Some(text.clone()),
                Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
                Value::Null | Value::Array(_) | Value::Object(_) => None,
            };
            if let Some(text) = text {
                headers.insert(name, header_value(&text));
            }
        }
        if let (Value::Object(schema), Value::Object(arguments)) = (property, value) {
            mirror_arguments(headers, schema, arguments)?;
        }
    }
    Ok(())
}

/// `Authorization: Bearer TOKEN`.
pub(super) fn bearer(token: &str) -> Result<HeaderValue, ClientError> {
    let visible = !token.is_empty() && token.chars().all(|c| c.is_ascii_graphic());
    let value = HeaderValue::from_str(&format!("Bearer {token}"));
    match value {
        Ok(mut value) if visible => {
            value.set_sensitive(true);
            Ok(value)
        }
        _ => Err(ClientError::BadToken),
    }
}

/// A text as a header's value: as it is where a header can carry it unchanged, else in the base64 sentinel.
fn header_value(text: &str) -> HeaderValue {
    let plain = text.chars().all(|c| c == ' ' || c.is_ascii_graphic())
        && text.trim() == text
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    let value = match plain {
        true => text.to_owned(),
        false => format!("=?base64?{}?=", STANDARD.encode(text)),
    };
    HeaderValue::from_str(&value).expect("visible ASCII and inner blanks are a header value")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_header_carries_goes_in_the_sentinel() {
        for (text, value) in [
            ("hash_files", "hash_files"),
            ("two words", "two words"),
            ("größe", "=?base64?Z3LDtsOfZQ==?="),
            (" edge", "=?base64?IGVkZ2U=?="),
            ("a\nb", "=?base64?YQpi?="),
            ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
            ("=?base64?only the prefix", "=?base64?only the prefix"),
        ] {
            assert_eq!(header_value(text).to_str().unwrap(), value, "{text:?}");
        }
    }

    #[test]
    fn only_annotated_arguments_that_are_there_are_mirrored() {
        let schema = json!({ "type": "object", "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "count": { "type": "integer", "x-mcp-header": "Count" },
            "dry": { "type": "boolean", "x-mcp-header": "Dry" },
            "gone": { "type": "string", "x-mcp-header": "Gone" },
            "nothing": { "type": "string", "x-mcp-header": "Nothing" },
            "plain": { "type": "string" },
            "inner": { "type": "object", "properties": {
                "deep": { "type": "string", "x-mcp-header": "Deep" },
            } },
        } });
        let arguments = json!({
            "region": "zürich", "count": 42, "dry": true, "nothing": null, "plain": "p",
            "inner": { "deep": "d" },
        });
        let mut headers = HeaderMap::new();
        let (schema, arguments) = (schema.as_object().unwrap(), arguments.as_object().unwrap());
        mirror_arguments(&mut headers, schema, arguments).unwrap();
        let seen: Vec<_> = ["region", "count", "dry", "deep", "gone", "nothing", "plain"]
            .iter()
            .map(|name| headers.get(format!("mcp-param-{name}")))
            .map(|value| value.map(|value| value.to_str().unwrap()))
            .collect();
        assert_eq!(seen, [Some("=?base64?esO8cmljaA==?="), Some("42"), Some("true"), Some("d"), None, None, None]);
    }

    #[test]
    fn a_token_with_a_line_break_is_refused_and_a_good_one_is_not_shown() {
        assert!(matches!(bearer("a\nb"), Err(ClientError::BadToken)));
        assert!(matches!(bearer(""), Err(ClientError::BadToken)));
        assert!(!format!("{:?}", bearer("s3cret").unwrap()).contains("s3cret"));
    }
}
