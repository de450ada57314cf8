//! Whether an answer fits the question that was asked.
//!
//! A form elicitation asks for a flat object: strings, numbers, booleans, and choices among given strings (MCP 2026-07-28,
//! Elicitation § Requested Schema). That is small enough to be checked here, without a validator and without I/O.

use alloc::format;
use alloc::string::{String, ToString};

use serde_json::{Map, Value};

use crate::payload::Misfit;

/// Checks the `content` of an accepted form against the `requestedSchema` of its question.
///
/// Members that the schema does not name are let through: the schema of a form is open, like any JSON schema.
///
/// # Errors
/// Names the first member that does not fit, and why.
pub fn check(schema: &Value, content: &Value) -> Result<(), Misfit> {
    let Value::Object(content) = content else {
        return misfit(format!("content must be an object, not {}", kind(content)));
    };
    for (name, value) in content {
        let scalar = |value: &Value| matches!(value, Value::String(_) | Value::Number(_) | Value::Bool(_));
        let strings = |value: &Value| value.as_array().is_some_and(|list| list.iter().all(Value::is_string));
        if !scalar(value) && !strings(value) {
            return misfit(format!("{name} must be a string, a number, a boolean or a list of strings"));
        }
    }
    let no_properties = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&no_properties);
    for name in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        if !content.contains_key(name) {
            return misfit(format!("{name} is required"));
        }
    }
    for (name, property) in properties {
        if let Some(value) = content.get(name) {
            field(property, value).map_err(|Misfit(reason)| Misfit(format!("{name} {reason}")))?;
        }
    }
    Ok(())
}

fn field(schema: &Value, value: &Value) -> Result<(), Misfit> {
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => string(schema, value),
        Some("integer") => {
            let whole = value.as_i64().is_some()
                || value.as_u64().is_some()
                // 3.0 is an integer to JSON schema.
                || value.as_f64().is_some_and(|number| number % 1.0 == 0.0);
            if whole { number(schema, value) } else { misfit(format!("must be an integer, not {}", kind(value))) }
        }
        Some("number") if value.is_number() => number(schema, value),
        Some("number") => misfit(format!("must be a number, not {}", kind(value))),
        Some("boolean") if value.is_boolean() => Ok(()),
        Some("boolean") => misfit(format!("must be a boolean, not {}", kind(value))),
        Some("array") => choices(schema, value),
        Some(_) | None => Ok(()),
    }
}

fn string(schema: &Value, value: &Value) -> Result<(), Misfit> {
    let Some(text) = value.as_str() else { return misfit(format!("must be a string, not {}", kind(value))) };
    one_of(schema, "oneOf", text)?;
    let length = text.chars().count() as u64;
    if let Some(least) = schema.get("minLength").and_then(Value::as_u64)
        && length < least
    {
        return misfit(format!("must have at least {least} characters"));
    }
    if let Some(most) = schema.get("maxLength").and_then(Value::as_u64)
        && length > most
    {
        return misfit(format!("must have at most {most} characters"));
    }
    let format = schema.get("format").and_then(Value::as_str);
    let fits = match format {
        Some("email") => text.split_once('@').is_some_and(|(local, host)| !local.is_empty() && !host.is_empty()),
        Some("uri") => text.split_once(':').is_some_and(|(scheme, rest)| {
            !rest.is_empty()
                && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        }),
        Some("date") => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
        Some("date-time") => text.parse::<jiff::Timestamp>().is_ok(),
        Some(_) | None => true,
    };
    if fits { Ok(()) } else { misfit(format!("must be of the form {}", format.unwrap_or_default())) }
}

fn number(schema: &Value, value: &Value) -> Result<(), Misfit> {
    let Some(number) = value.as_f64() else { return Ok(()) };
    if let Some(least) = schema.get("minimum").and_then(Value::as_f64)
        && number < least
    {
        return misfit(format!("must be at least {least}"));
    }
    if let Some(most) = schema.get("maximum").and_then(Value::as_f64)
        && number > most
    {
        return misfit(format!("must be at most {most}"));
    }
    Ok(())
}

fn choices(schema: &Value, value: &Value) -> Result<(), Misfit> {
    let Some(list) = value.as_array() else { return misfit(format!("must be a list, not {}", kind(value))) };
    for item in list {
        let Some(text) = item.as_str() else { return misfit("must be a list of strings".to_string()) };
        if let Some(items) = schema.get("items") {
            one_of(items, "anyOf", text)?;
        }
    }
    let count = list.len() as u64;
    if let Some(least) = schema.get("minItems").and_then(Value::as_u64)
        && count < least
    {
        return misfit(format!("must have at least {least} items"));
    }
    if let Some(most) = schema.get("maxItems").and_then(Value::as_u64)
        && count > most
    {
        return misfit(format!("must have at most {most} items"));
    }
    Ok(())
}

/// The two ways to list choices: plain (`enum`) and titled (`oneOf` or `anyOf` of `const`).
fn one_of(schema: &Value, titled: &str, text: &str) -> Result<(), Misfit> {
    let plain = schema.get("enum").and_then(Value::as_array);
    let titled = schema.get(titled).and_then(Value::as_array);
    let among = |list: &[Value], member: fn(&Value) -> Option<&str>| list.iter().any(|it| member(it) == Some(text));
    let fits = plain.is_none_or(|list| among(list, Value::as_str))
        && titled.is_none_or(|list| among(list, |it| it.get("const").and_then(Value::as_str)));
    if fits { Ok(()) } else { misfit(format!("cannot be {text:?}: it is none of the choices")) }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn misfit<T>(reason: String) -> Result<T, Misfit> {
    Err(Misfit(reason))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_table_of_forms() {
        let schema = json!({"type":"object","required":["name"],"properties":{
            "name":{"type":"string","minLength":1,"maxLength":5}, "age":{"type":"integer","minimum":0,"maximum":150},
            "score":{"type":"number"}, "ok":{"type":"boolean"}, "mail":{"type":"string","format":"email"},
            "day":{"type":"string","format":"date"}, "at":{"type":"string","format":"date-time"},
            "link":{"type":"string","format":"uri"}, "one":{"type":"string","enum":["a","b"]},
            "titled":{"type":"string","oneOf":[{"const":"x","title":"X"}]},
            "many":{"type":"array","minItems":1,"maxItems":2,"items":{"type":"string","enum":["a","b","c"]}},
            "any":{"type":"array","items":{"anyOf":[{"const":"p","title":"P"}]}}}});
        let fits = [
            json!({"name":"Ann"}),
            json!({"name":"Ann","age":0,"score":1.5,"ok":false,"mail":"a@b","day":"2026-01-31"}),
            json!({"name":"Ann","age":3.0,"at":"2026-01-31T10:00:00Z","link":"urn:x","one":"b","titled":"x"}),
            json!({"name":"Ann","many":["a","c"],"any":["p"],"unknown":"let through"}),
            json!({"name":"äöüßé"}),
        ];
        for content in fits {
            assert_eq!(check(&schema, &content), Ok(()), "{content}");
        }
        let misfits = [
            (json!({}), "name is required"),
            (json!(7), "content must be an object, not a number"),
            (json!(null), "content must be an object, not null"),
            (json!({"name":42}), "name must be a string, not a number"),
            (json!({"name":{"first":"A"}}), "name must be a string, a number, a boolean or a list of strings"),
            (json!({"name":""}), "name must have at least 1 characters"),
            (json!({"name":"Annabel"}), "name must have at most 5 characters"),
            (json!({"name":"Ann","age":-1}), "age must be at least 0"),
            (json!({"name":"Ann","age":1.5}), "age must be an integer, not a number"),
            (json!({"name":"Ann","age":"3"}), "age must be an integer, not a string"),
            (json!({"name":"Ann","ok":"yes"}), "ok must be a boolean, not a string"),
            (json!({"name":"Ann","mail":"nobody"}), "mail must be of the form email"),
            (json!({"name":"Ann","day":"2026-02-30"}), "day must be of the form date"),
            (json!({"name":"Ann","at":"yesterday"}), "at must be of the form date-time"),
            (json!({"name":"Ann","link":"nothing"}), "link must be of the form uri"),
            (json!({"name":"Ann","one":"c"}), "one cannot be \"c\": it is none of the choices"),
            (json!({"name":"Ann","titled":"X"}), "titled cannot be \"X\": it is none of the choices"),
            (json!({"name":"Ann","many":[]}), "many must have at least 1 items"),
            (json!({"name":"Ann","many":["a","b","c"]}), "many must have at most 2 items"),
            (json!({"name":"Ann","many":["d"]}), "many cannot be \"d\": it is none of the choices"),
            (json!({"name":"Ann","any":"p"}), "any must be a list, not a string"),
        ];
        for (content, reason) in misfits {
            assert_eq!(check(&schema, &content), Err(Misfit(reason.into())), "{content}");
        }
    }
}
