//! JSON schemas of tools: made from types, compiled once, and never fetched from anywhere.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};
use tokkuri_core::wire::Json;

/// A schema that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {which} schema of the tool {tool:?} cannot be used: {reason}")]
pub struct BadSchema {
    /// The tool.
    pub tool: String,
    /// `input` or `output`.
    pub which: &'static str,
    /// What is wrong with it.
    pub reason: String,
}

/// The schema of a type, self-contained (2020-12).
pub(crate) fn of<T: JsonSchema>() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let settings = settings.with_transform(RecursiveTransform(without_rust_formats));
    let mut schema = match settings.into_generator().into_root_schema_for::<T>().to_value() {
        Value::Object(schema) => schema,
        // `true` and `false` are schemas, but a tool's has to be one of an object.
        _ => Map::new(),
    };
    schema.remove("title");
    // What the type's doc says is about the type; what the tool does, its own description says.
    schema.remove("description");
    // `true` is a schema as good as `{}`, but MCP of 2025 wants an object for each property.
    for property in
        schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flat_map(|all| all.values_mut())
    {
        if *property == Value::Bool(true) {
            *property = Value::Object(Map::new());
        }
    }
    schema.entry("type").or_insert_with(|| "object".into());
    schema
}

/// `uint64` and its like are no formats of JSON Schema: validators of other languages complain about each of them. What they
/// stand for is in the bounds.
fn without_rust_formats(schema: &mut Schema) {
    let numeric = |format: &str| {
        let name = format.trim_start_matches('u');
        name == "float"
            || name == "double"
            || name.strip_prefix("int").is_some_and(|bits| bits.is_empty() || bits.parse::<u8>().is_ok())
    };
    if schema.get("format").and_then(Value::as_str).is_some_and(numeric) {
        schema.remove("format");
    }
}

/// A compiled schema.
#[derive(Debug)]
pub(crate) struct Validator(jsonschema::Validator);

impl Validator {
    pub(crate) fn new(tool: &str, which: &'static str, schema: &Map<String, Value>) -> Result<Self, BadSchema> {
        let bad = |reason: String| BadSchema { tool: tool.to_owned(), which, reason };
        if which == "input" && schema.get("type").is_none_or(|it| it != "object") {
            return Err(bad("its root must say \"type\": \"object\"".into()));
        }
        let schema = Value::Object(schema.clone());
        let options = jsonschema::options().with_draft(jsonschema::Draft::Draft202012);
        options.build(&schema).map(Self).map_err(|error| bad(error.to_string()))
    }

    /// Checks a value.
    ///
    /// # Errors
    /// One line a fault, each with the path of what is wrong: at most eight of them.
    pub(crate) fn check(&self, value: &Json) -> Result<(), String> {
        let value: Value = value.read().map_err(|error| format!("it cannot be read: {error}"))?;
        if self.0.is_valid(&value) {
            return Ok(());
        }
        let faults: Vec<_> = self
            .0
            .iter_errors(&value)
            .take(8)
            .map(|error| {
                let path = error.instance_path().to_string();
                let path = if path.is_empty() { "/".to_owned() } else { path };
                format!("{path}: {error}")
            })
            .collect();
        Err(faults.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_has_only_formats_that_json_schema_knows() {
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema is looked at")]
        struct Numbers {
            small: u8,
            many: Vec<Option<i64>>,
            size: usize,
            real: f64,
            #[schemars(email)]
            mail: String,
        }
        let schema = of::<Numbers>();
        let formats = serde_json::to_string(&schema).unwrap().matches("\"format\"").count();
        assert_eq!((formats, &schema["properties"]["mail"]["format"]), (1, &Value::from("email")), "{schema:?}");
        assert_eq!(schema["properties"]["small"]["maximum"], 255);
    }
}
