//! `Mcp-Param-*`: arguments that a tool's schema asks to be repeated in headers, by `x-mcp-header` (MCP 2026-07-28, Streamable HTTP
//! § Request Metadata).
//!
//! The door checks them for our own tools, whichever way their calls go; rmcp checks them for those of the user's handler.

use http::HeaderMap;
use http::header::HeaderName;
use serde_json::Value;

use crate::mcp::headers::{Single, decode};
use crate::mcp::refusal::{HEADER_MISMATCH, Refusal};

const ANNOTATION: &str = "x-mcp-header";

/// The annotated arguments of one tool.
#[derive(Clone, Debug, Default)]
pub(crate) struct ParamHeaders(Vec<Mirrored>);

/// Why clients would drop a tool with this schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("x-mcp-header at {at}: {reason}")]
pub(crate) struct BadAnnotation {
    at: String,
    reason: &'static str,
}

#[derive(Clone, Debug)]
struct Mirrored {
    path: Vec<String>,
    header: HeaderName,
}

impl ParamHeaders {
    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those of a tool's input schema.
    ///
    /// # Errors
    /// Says where an annotation is none: it must be a token, used once whatever its case, on a string, an integer or a boolean that is
    /// reached through `properties` alone.
    pub(crate) fn of(input_schema: &Value) -> Result<Self, BadAnnotation> {
        let mut found = Self::default();
        found.collect(input_schema, &mut Vec::new(), true)?;
        Ok(found)
    }

    /// Whether the headers say what the arguments say. Call it only after the request has passed everything that comes before.
    ///
    /// # Errors
    /// -32020 on 400, without the request's id.
    pub(crate) fn check(&self, headers: &HeaderMap, arguments: Option<&Value>) -> Result<(), Refusal> {
        for Mirrored { path, header } in &self.0 {
            let argument = arguments.and_then(|all| path.iter().try_fold(all, |value, key| value.get(key)));
            let argument = argument.filter(|value| value.is_string() || value.is_boolean() || value.is_number());
            let wrong = |what| Err(Refusal::bad_request(HEADER_MISMATCH, format!("{header} {what}")));
            match (Single::of(headers, header), argument) {
                (Single::Absent, None) => {}
                (Single::Absent, Some(_)) => return wrong("is missing"),
                (Single::Malformed, _) => return wrong("is given twice or is not visible ASCII"),
                (Single::One(_), None) => return wrong("is given for an argument that is not"),
                (Single::One(text), Some(argument)) => match decode(text) {
                    None => return wrong("is not valid Base64 of UTF-8"),
                    Some(text) if !says(&text, argument) => return wrong("is not what the body says"),
                    Some(_) => {}
                },
            }
        }
        Ok(())
    }

    fn collect(&mut self, schema: &Value, path: &mut Vec<String>, on_chain: bool) -> Result<(), BadAnnotation> {
        let Value::Object(members) = schema else { return Ok(()) };
        for (key, value) in members {
            match key.as_str() {
                ANNOTATION => self.add(value, schema, path, on_chain)?,
                "properties" => {
                    for (name, property) in value.as_object().into_iter().flatten() {
                        path.push(name.clone());
                        self.collect(property, path, on_chain)?;
                        path.pop();
                    }
                }
                // Values, not schemas: what looks like an annotation in there is none.
                "default" | "const" | "enum" | "examples" | "dependentRequired" => {}
                "$defs" | "definitions" | "dependentSchemas" | "patternProperties" => {
                    for schema in value.as_object().into_iter().flat_map(|map| map.values()) {
                        self.collect(schema, path, false)?;
                    }
                }
                _ => {
                    let listed = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
                    for schema in listed {
                        self.collect(schema, path, false)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, name: &Value, schema: &Value, path: &[String], on_chain: bool) -> Result<(), BadAnnotation> {
        let bad = |reason| BadAnnotation { at: format!("/{}", path.join("/")), reason };
        if !on_chain || path.is_empty() {
            return Err(bad("it must be on a property that is reached through properties alone"));
        }
        if !matches!(schema.get("type").and_then(Value::as_str), Some("string" | "integer" | "boolean")) {
            return Err(bad("the property must be a string, an integer or a boolean"));
        }
        let name = name.as_str().filter(|name| !name.is_empty()).ok_or_else(|| bad("it must be a token"))?;
        let header = HeaderName::try_from(format!("mcp-param-{name}")).map_err(|_| bad("it must be a token"))?;
        if self.0.iter().any(|other| other.header == header) {
            return Err(bad("it is used twice"));
        }
        self.0.push(Mirrored { path: path.to_vec(), header });
        Ok(())
    }
}

/// Whether a header's text stands for this argument; integers are compared as numbers (`42.0` is `42`).
fn says(text: &str, argument: &Value) -> bool {
    match argument {
        Value::String(wanted) => text == wanted,
        Value::Bool(wanted) => text == if *wanted { "true" } else { "false" },
        Value::Number(wanted) => {
            text == wanted.to_string()
                || serde_json::from_str::<serde_json::Number>(text).is_ok_and(|said| said.as_f64() == wanted.as_f64())
        }
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use http::header::HeaderValue;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Headers as name and value.
    type Pairs<'a> = &'a [(&'a str, &'a str)];

    fn map(pairs: Pairs<'_>) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(name.parse::<HeaderName>().unwrap(), HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        map
    }

    fn annotated() -> ParamHeaders {
        ParamHeaders::of(&json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "n": {"type": "integer", "x-mcp-header": "N"},
            "deep": {"type": "object", "properties": {"on": {"type": "boolean", "x-mcp-header": "On"}}},
            "other": {"type": "string", "default": {"x-mcp-header": "no schema"}},
        }}))
        .unwrap()
    }

    #[test]
    fn headers_have_to_say_what_the_arguments_say() {
        let eu = ("mcp-param-region", "eu");
        let table: [(Pairs<'_>, Value, bool); 19] = [
            (&[], json!({}), true),
            (&[], json!({"other": "x", "region": null}), true),
            (&[eu], json!({"region": "eu"}), true),
            (&[("MCP-PARAM-REGION", " eu ")], json!({"region": "eu"}), true),
            (&[("mcp-param-region", "=?base64?ZXU=?=")], json!({"region": "eu"}), true),
            (&[("mcp-param-region", "=?base64?ZXU?=")], json!({"region": "eu"}), false),
            (&[("mcp-param-region", "us")], json!({"region": "eu"}), false),
            (&[eu, eu], json!({"region": "eu"}), false),
            (&[], json!({"region": "eu"}), false),
            (&[eu], json!({}), false),
            (&[eu], json!({"region": null}), false),
            (&[("mcp-param-n", "42")], json!({"n": 42}), true),
            (&[("mcp-param-n", "42.0")], json!({"n": 42}), true),
            (&[("mcp-param-n", "42")], json!({"n": 42.0}), true),
            (&[("mcp-param-n", "43")], json!({"n": 42}), false),
            (&[("mcp-param-n", "x")], json!({"n": 42}), false),
            (&[("mcp-param-on", "true")], json!({"deep": {"on": true}}), true),
            (&[("mcp-param-on", "True")], json!({"deep": {"on": true}}), false),
            (&[], json!({"deep": {"on": false}}), false),
        ];
        for (pairs, arguments, fits) in table {
            let said = annotated().check(&map(pairs), Some(&arguments));
            assert_eq!(said.is_ok(), fits, "{pairs:?} {arguments}");
            if let Err(refusal) = said {
                assert_eq!((refusal.status.as_u16(), refusal.code), (400, -32020));
            }
        }
        assert!(annotated().check(&map(&[]), None).is_ok());
        assert!(annotated().check(&map(&[eu]), None).is_err());
    }

    #[test]
    fn a_schema_that_clients_would_drop_is_refused() {
        let string = json!({"type": "string", "x-mcp-header": "A"});
        let bad = [
            json!({"type": "string", "x-mcp-header": "A"}),
            json!({"properties": {"a": {"type": "number", "x-mcp-header": "A"}}}),
            json!({"properties": {"a": {"x-mcp-header": "A"}}}),
            json!({"properties": {"a": {"type": "string", "x-mcp-header": ""}}}),
            json!({"properties": {"a": {"type": "string", "x-mcp-header": "a b"}}}),
            json!({"properties": {"a": {"type": "string", "x-mcp-header": 7}}}),
            json!({"properties": {"a": string, "b": {"type": "string", "x-mcp-header": "a"}}}),
            json!({"properties": {"a": {"type": "array", "items": string}}}),
            json!({"oneOf": [{"properties": {"a": string}}]}),
            json!({"$defs": {"x": string}}),
        ];
        for schema in bad {
            assert!(ParamHeaders::of(&schema).is_err(), "{schema}");
        }
        for schema in [json!(true), json!({}), json!({"properties": {"x-mcp-header": {"type": "string"}}})] {
            assert!(ParamHeaders::of(&schema).is_ok(), "{schema}");
        }
    }

    proptest! {
        #[test]
        fn no_header_makes_it_panic(value in proptest::collection::vec(any::<u8>(), 0..24), n in any::<i64>()) {
            let mut headers = HeaderMap::new();
            if let Ok(value) = HeaderValue::from_bytes(&value) { headers.insert("mcp-param-n", value); }
            let _ = annotated().check(&headers, Some(&json!({"n": n})));
        }
    }
}
