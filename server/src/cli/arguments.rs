//! `--arg k=v` into JSON, by what the tool's schema says of `k`.

use serde_json::{Map, Value};

use super::{Exit, Stop};
use crate::{client::Tool, config::nearest};

/// The arguments of a call: each of `given` is `key=value`, converted by the tool's schema, or `key:=json`.
///
/// # Errors
/// A [`Stop`] that names the argument and what would be right.
pub(crate) fn convert(tool: &Tool, given: &[String]) -> Result<Map<String, Value>, Stop> {
    let mut arguments = Map::new();
    for argument in given {
        let (key, value) = one(tool, argument).map_err(|line| Stop::new(Exit::Usage, line))?;
        if arguments.insert(key.clone(), value).is_some() {
            let line = format!("--arg {key} is given twice; a list is {key}:='[…, …]'");
            return Err(Stop::new(Exit::Usage, line));
        }
    }
    Ok(arguments)
}

/// The arguments given as one JSON object.
///
/// # Errors
/// A [`Stop`] that says where the JSON is wrong.
pub(crate) fn object(json: &str) -> Result<Map<String, Value>, Stop> {
    let wrong = |what: String| {
        let line = format!("--json {what}; give an object such as '{{\"path\": \".\"}}'");
        Stop::new(Exit::Usage, line)
    };
    match serde_json::from_str(json) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(wrong("is no object".to_owned())),
        Err(error) => Err(wrong(format!("is no JSON ({error})"))),
    }
}

fn one(tool: &Tool, argument: &str) -> Result<(String, Value), String> {
    let Some((key, text)) = argument.split_once('=') else {
        return Err(format!("--arg {argument:?} has no value; give key=value or key:=json"));
    };
    if let Some(key) = key.strip_suffix(':') {
        let value = serde_json::from_str(text).map_err(|error| format!("--arg {key}:={text} is no JSON ({error})"))?;
        return Ok((key.to_owned(), value));
    }
    let properties = tool.input_schema.get("properties").and_then(Value::as_object);
    let Some(schema) = properties.and_then(|properties| properties.get(key)) else {
        return Err(unknown(tool, key, properties));
    };
    let kinds = kinds(&tool.input_schema, schema, 0);
    for kind in &kinds {
        if let Some(value) = parse(kind, text) {
            return Ok((key.to_owned(), value));
        }
    }
    Err(format!(
        "--arg {key}={text}: {key} is {}; {}",
        words(&kinds),
        match kinds.iter().any(|kind| matches!(*kind, "array" | "object")) {
            true => format!("give it as JSON, {key}:='…'"),
            false => "give such a value".to_owned(),
        }
    ))
}

fn unknown(tool: &Tool, key: &str, properties: Option<&Map<String, Value>>) -> String {
    let names: Vec<&str> = properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    let advice = match nearest(key, names.iter().copied()) {
        Some(near) => format!("did you mean {near}?"),
        None if names.is_empty() => "it takes none".to_owned(),
        None => format!("it takes {}", names.join(", ")),
    };
    format!("{} has no argument {key}; {advice} ({key}:=JSON sends it all the same)", tool.name)
}

/// The JSON types that a schema allows, in the order in which a text is tried as one: the strictest first.
fn kinds<'s>(root: &'s Map<String, Value>, schema: &'s Value, depth: usize) -> Vec<&'s str> {
    const ORDER: [&str; 7] = ["null", "boolean", "integer", "number", "array", "object", "string"];
    let mut found: Vec<&str> = Vec::new();
    match schema.get("type") {
        Some(Value::String(kind)) => found.push(kind),
        Some(Value::Array(several)) => found.extend(several.iter().filter_map(Value::as_str)),
        _ => {}
    }
    let mut inner = |schema: &'s Value| {
        // A schema may refer to itself; nobody types an argument that is nested this deep.
        if depth < 8 {
            found.extend(kinds(root, schema, depth + 1));
        }
    };
    for several in ["anyOf", "oneOf", "allOf"] {
        let list = schema.get(several).and_then(Value::as_array);
        list.into_iter().flatten().for_each(&mut inner);
    }
    if let Some(target) = schema.get("$ref").and_then(Value::as_str).and_then(|at| resolve(root, at)) {
        inner(target);
    }
    for value in schema.get("enum").and_then(Value::as_array).into_iter().flatten() {
        found.push(kind_of(value));
    }
    if let Some(value) = schema.get("const") {
        found.push(kind_of(value));
    }
    let mut kinds: Vec<_> = ORDER.into_iter().filter(|kind| found.contains(kind)).collect();
    if kinds.is_empty() {
        kinds.push("string");
    }
    kinds
}

fn resolve<'s>(root: &'s Map<String, Value>, reference: &str) -> Option<&'s Value> {
    let mut steps = reference.strip_prefix("#/")?.split('/');
    let first = root.get(steps.next()?)?;
    steps.try_fold(first, |value, step| value.get(step))
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn parse(kind: &str, text: &str) -> Option<Value> {
    match kind {
        "string" => Some(Value::from(text)),
        "null" => (text == "null").then_some(Value::Null),
        "boolean" => text.parse::<bool>().ok().map(Value::from),
        "integer" => {
            let value: Value = serde_json::from_str(text).ok()?;
            (value.is_i64() || value.is_u64()).then_some(value)
        }
        "number" => serde_json::from_str(text).ok().filter(Value::is_number),
        "array" => serde_json::from_str(text).ok().filter(Value::is_array),
        "object" => serde_json::from_str(text).ok().filter(Value::is_object),
        _ => None,
    }
}

fn words(kinds: &[&str]) -> String {
    let words: Vec<_> = kinds
        .iter()
        .map(|kind| match *kind {
            "boolean" => "true or false",
            "integer" => "a whole number",
            "number" => "a number",
            "array" => "a list",
            "object" => "an object",
            other => other,
        })
        .collect();
    words.join(" or ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool() -> Tool {
        serde_json::from_value(json!({ "name": "t", "inputSchema": {
            "type": "object",
            "properties": {
                "text": { "type": "string" },
                "count": { "type": "integer" },
                "maybe": { "type": ["integer", "null"] },
                "ratio": { "type": "number" },
                "dry": { "type": "boolean" },
                "list": { "type": "array" },
                "map": { "type": "object" },
                "mode": { "enum": ["fast", "slow"] },
                "either": { "anyOf": [{ "type": "boolean" }, { "type": "string" }] },
                "refers": { "$ref": "#/$defs/N" },
                "loops": { "$ref": "#/$defs/L" },
                "any": {},
            },
            "$defs": { "N": { "type": "integer" }, "L": { "$ref": "#/$defs/L" } },
        } }))
        .unwrap()
    }

    #[test]
    fn a_value_becomes_what_the_schema_says() {
        for (given, value) in [
            ("text=5", json!("5")),
            ("text=a=b", json!("a=b")),
            ("text=", json!("")),
            ("text:=5", json!(5)),
            ("count=-5", json!(-5)),
            ("maybe=null", json!(null)),
            ("maybe=3", json!(3)),
            ("ratio=1e3", json!(1e3)),
            ("ratio=7", json!(7)),
            ("dry=true", json!(true)),
            ("list=[1,2]", json!([1, 2])),
            ("map={\"a\":1}", json!({ "a": 1 })),
            ("mode=fast", json!("fast")),
            ("either=true", json!(true)),
            ("either=yes", json!("yes")),
            ("refers=4", json!(4)),
            ("loops=x", json!("x")),
            ("any=5", json!("5")),
            ("new:={\"a\":[]}", json!({ "a": [] })),
        ] {
            let arguments = convert(&tool(), &[given.to_owned()]).expect(given);
            assert_eq!(arguments.values().collect::<Vec<_>>(), [&value], "{given}");
        }
    }

    #[test]
    fn a_value_that_does_not_fit_is_refused_with_what_would() {
        for (given, needle) in [
            (vec!["count=many"], "--arg count=many: count is a whole number"),
            (vec!["count=1.5"], "count is a whole number"),
            (vec!["dry=yes"], "dry is true or false"),
            (vec!["list=a"], "list is a list; give it as JSON, list:='…'"),
            (vec!["maybe=x"], "maybe is null or a whole number"),
            (vec!["cuont=1"], "t has no argument cuont; did you mean count?"),
            (vec!["zebra=1"], "t has no argument zebra; it takes any, count,"),
            (vec!["count"], "has no value; give key=value or key:=json"),
            (vec!["count:=x"], "--arg count:=x is no JSON"),
            (vec!["count=1", "count=2"], "--arg count is given twice"),
        ] {
            let given: Vec<_> = given.into_iter().map(String::from).collect();
            let line = convert(&tool(), &given).unwrap_err().to_string();
            assert!(line.contains(needle), "{given:?}\n  said: {line}\n  want: {needle}");
        }
    }

    #[test]
    fn json_arguments_must_be_an_object() {
        assert_eq!(object("{\"a\":1}").unwrap()["a"], 1);
        for json in ["[1]", "{", "x"] {
            assert!(object(json).unwrap_err().to_string().contains("give an object such as"), "{json}");
        }
    }
}
