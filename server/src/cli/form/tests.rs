//! Fields against lines.

use super::*;

fn field(schema: Value, required: bool) -> Field {
    let required = if required { json!(["f"]) } else { json!([]) };
    let schema = json!({ "type": "object", "properties": { "f": schema }, "required": required });
    Form::read(&schema).fields.remove(0)
}

#[test]
fn a_line_becomes_the_value_that_the_field_wants() {
    let titled = json!([{ "const": "r", "title": "Red" }, { "const": "g", "title": "Green" }]);
    for (schema, line, value) in [
        (json!({ "type": "string" }), " Ada ", json!("Ada")),
        (json!({ "type": "string" }), "\"\"", json!("")),
        (json!({ "type": "string", "default": "x" }), "", json!("x")),
        (json!({ "type": "integer" }), "42", json!(42)),
        (json!({ "type": "number" }), "1.5", json!(1.5)),
        (json!({ "type": "boolean" }), "Yes", json!(true)),
        (json!({ "type": "boolean" }), "n", json!(false)),
        (json!({ "type": "boolean", "default": false }), "", json!(false)),
        (json!({ "enum": ["a", "b"] }), "2", json!("b")),
        (json!({ "enum": ["a", "b"] }), "a", json!("a")),
        (json!({ "enum": ["a", "b"], "enumNames": ["A!", "B!"] }), "B!", json!("b")),
        (json!({ "enum": ["2", "1"] }), "1", json!("1")),
        (json!({ "type": "string", "oneOf": titled }), "Green", json!("g")),
        (json!({ "type": "array", "items": { "anyOf": titled } }), "1, g", json!(["r", "g"])),
        (json!({ "type": "array", "items": { "enum": ["a"] } }), "a", json!(["a"])),
    ] {
        assert_eq!(field(schema.clone(), true).read(line), Ok(Some(value)), "{schema} {line}");
    }
}

#[test]
fn a_line_that_does_not_fit_says_why() {
    for (schema, line, needle) in [
        (json!({ "type": "string" }), "", "it is needed"),
        (json!({ "type": "string", "minLength": 3 }), "ab", "shorter than 3"),
        (json!({ "type": "string", "maxLength": 1 }), "ab", "longer than 1"),
        (json!({ "type": "string", "format": "email" }), "nobody", "email"),
        (json!({ "type": "string", "format": "date" }), "today", "date"),
        (json!({ "type": "integer", "minimum": 0 }), "-1", "minimum of 0"),
        (json!({ "type": "number", "maximum": 1 }), "1.5", "maximum of 1"),
        (json!({ "type": "integer" }), "1.5", "is no whole number"),
        (json!({ "type": "number" }), "NaN", "is no number"),
        (json!({ "type": "boolean" }), "maybe", "type yes or no"),
        (json!({ "enum": ["a", "b"] }), "3", "type a number from 1 to 2"),
        (json!({ "enum": ["a", "b"] }), "0", "type a number from 1 to 2"),
        (json!({ "type": "array", "maxItems": 1, "items": { "enum": ["a", "b"] } }), "a,b", "more than 1 item"),
    ] {
        let said = field(schema.clone(), true).read(line).unwrap_err();
        assert!(said.contains(needle), "{schema} {line}: {said}");
    }
}

#[test]
fn an_optional_field_may_be_left_out() {
    assert_eq!(field(json!({ "type": "integer" }), false).read(""), Ok(None));
}

#[test]
fn defaults_answer_a_form_only_if_every_required_field_has_one() {
    let form = |schema: Value| Form::read(&schema).defaults().map(Value::Object);
    let properties = json!({ "a": { "type": "string", "default": "x" }, "b": { "type": "integer" } });
    let with = |required: Value| json!({ "properties": properties, "required": required });
    assert_eq!(form(with(json!(["a"]))), Some(json!({ "a": "x" })));
    assert_eq!(form(with(json!(["a", "b"]))), None);
    assert_eq!(form(json!({})), Some(json!({})));
}

#[test]
fn a_prompt_says_all_that_is_needed_to_answer_it() {
    let age = field(
        json!({ "type": "integer", "title": "Age", "description": "in years", "minimum": 0, "default": 7 }),
        true,
    );
    assert_eq!(age.prompt(), "  Age – in years [whole number; at least 0; empty: 7]:");
    let colour = field(json!({ "oneOf": [{ "const": "r", "title": "Red" }] }), false);
    assert_eq!(colour.prompt(), "    1) Red (r)\n  f [one of the above; may be empty]:");
}
