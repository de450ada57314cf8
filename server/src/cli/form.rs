//! A form of an elicitation as a terminal asks it: its fields, what may be typed for each, what their defaults are.
//!
//! MCP keeps these forms flat: texts, numbers, booleans, choices. The type decides how a line is read; everything
//! else that the schema says (bounds, lengths, formats) is left to the schema itself.

use serde_json::{Map, Value, json};

/// A form to fill in.
#[derive(Debug)]
pub(crate) struct Form {
    fields: Vec<Field>,
}

/// One field of a form.
#[derive(Debug)]
pub(crate) struct Field {
    /// Its key in the answer.
    pub(crate) name: String,
    required: bool,
    kind: Kind,
    schema: Value,
}

#[derive(Debug)]
enum Kind {
    Text,
    Integer,
    Number,
    Boolean,
    One(Vec<Choice>),
    Many(Vec<Choice>),
}

/// A value that may be chosen, and what it is called.
#[derive(Debug)]
struct Choice {
    value: String,
    title: String,
}

impl Form {
    /// The form of an elicitation's `requestedSchema`; required fields first, then by name.
    pub(crate) fn read(schema: &Value) -> Self {
        let needed = |name: &str| {
            let required = schema.get("required").and_then(Value::as_array);
            required.is_some_and(|required| required.iter().any(|item| item == name))
        };
        let properties = schema.get("properties").and_then(Value::as_object);
        let mut fields: Vec<_> = properties
            .into_iter()
            .flatten()
            .map(|(name, schema)| Field {
                name: name.clone(),
                required: needed(name),
                kind: Kind::of(schema),
                schema: schema.clone(),
            })
            .collect();
        fields.sort_by_key(|field| !field.required);
        Self { fields }
    }

    /// Its fields, in the order in which they are asked.
    pub(crate) fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The answer that the defaults make; `None` if a required field has none.
    pub(crate) fn defaults(&self) -> Option<Map<String, Value>> {
        let mut content = Map::new();
        for field in &self.fields {
            match field.default() {
                Some(value) => {
                    content.insert(field.name.clone(), value.clone());
                }
                None if field.required => return None,
                None => {}
            }
        }
        Some(content)
    }

    /// An example of an answer, for a message that says how to give one.
    pub(crate) fn example(&self) -> Value {
        let fields = self.fields.iter().filter(|field| field.required);
        let examples = fields.map(|field| (field.name.clone(), field.example()));
        Value::Object(examples.collect())
    }
}

impl Field {
    /// Reads a line; `Ok(None)` leaves an optional field out. An empty line is the default, `""` the empty text.
    ///
    /// # Errors
    /// What is wrong with the line, in words for the person who typed it.
    pub(crate) fn read(&self, line: &str) -> Result<Option<Value>, String> {
        let line = line.trim();
        if line.is_empty() {
            return match self.default() {
                Some(value) => Ok(Some(value.clone())),
                None if self.required => Err("it is needed".to_owned()),
                None => Ok(None),
            };
        }
        let value = self.kind.read(line)?;
        match self.complaint(&value) {
            Some(complaint) => Err(complaint),
            None => Ok(Some(value)),
        }
    }

    /// What is asked, on one or more lines, without the final blank.
    pub(crate) fn prompt(&self) -> String {
        let word = |key: &str| self.schema.get(key).and_then(Value::as_str);
        let mut text = String::new();
        if let Kind::One(choices) | Kind::Many(choices) = &self.kind {
            for (number, choice) in (1..).zip(choices) {
                let value = match choice.title == choice.value {
                    true => String::new(),
                    false => format!(" ({})", choice.value),
                };
                text.push_str(&format!("    {number}) {}{value}\n", choice.title));
            }
        }
        let label = word("title").unwrap_or(&self.name);
        text.push_str(&format!("  {label}"));
        if let Some(description) = word("description") {
            text.push_str(&format!(" – {description}"));
        }
        let mut notes = vec![self.kind.words().to_owned()];
        notes.extend(self.bounds());
        match self.default() {
            Some(Value::String(default)) => notes.push(format!("empty: {default}")),
            Some(default) => notes.push(format!("empty: {default}")),
            None if !self.required => notes.push("may be empty".to_owned()),
            None => {}
        }
        format!("{text} [{}]:", notes.join("; "))
    }

    fn default(&self) -> Option<&Value> {
        self.schema.get("default")
    }

    fn bounds(&self) -> Vec<String> {
        [
            ("minimum", "at least "),
            ("maximum", "at most "),
            ("minLength", "characters at least "),
            ("maxLength", "characters at most "),
            ("minItems", "choices at least "),
            ("maxItems", "choices at most "),
            ("format", ""),
        ]
        .into_iter()
        .filter_map(|(key, words)| {
            let bound = self.schema.get(key)?;
            let bound = bound.as_str().map_or_else(|| bound.to_string(), str::to_owned);
            Some(format!("{words}{bound}"))
        })
        .collect()
    }

    /// What the field's own schema says against a value.
    fn complaint(&self, value: &Value) -> Option<String> {
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .build(&self.schema)
            // A schema that is none cannot object; the server still will.
            .ok()?;
        validator.validate(value).err().map(|error| error.to_string())
    }

    fn example(&self) -> Value {
        match (self.default(), &self.kind) {
            (Some(default), _) => default.clone(),
            (None, Kind::Text) => json!("…"),
            (None, Kind::Integer | Kind::Number) => self.schema.get("minimum").cloned().unwrap_or(json!(0)),
            (None, Kind::Boolean) => json!(true),
            (None, Kind::One(choices)) => {
                json!(choices.first().map_or("…", |choice| &choice.value))
            }
            (None, Kind::Many(choices)) => {
                json!(choices.iter().take(1).map(|choice| &choice.value).collect::<Vec<_>>())
            }
        }
    }
}

impl Kind {
    fn of(schema: &Value) -> Self {
        if let Some(choices) = choices(schema) {
            return Self::One(choices);
        }
        match schema.get("type").and_then(Value::as_str) {
            Some("integer") => Self::Integer,
            Some("number") => Self::Number,
            Some("boolean") => Self::Boolean,
            Some("array") => Self::Many(schema.get("items").and_then(choices).unwrap_or_default()),
            _ => Self::Text,
        }
    }

    fn read(&self, line: &str) -> Result<Value, String> {
        match self {
            Self::Text if line == "\"\"" => Ok(json!("")),
            Self::Text => Ok(json!(line)),
            Self::Integer => {
                let number: Option<i64> = line.parse().ok();
                number.map(Value::from).ok_or_else(|| format!("{line:?} is no whole number"))
            }
            Self::Number => {
                let number: Option<f64> = line.parse().ok().filter(|number: &f64| number.is_finite());
                number.map(Value::from).ok_or_else(|| format!("{line:?} is no number"))
            }
            Self::Boolean => match line.to_ascii_lowercase().as_str() {
                "y" | "yes" | "true" => Ok(json!(true)),
                "n" | "no" | "false" => Ok(json!(false)),
                _ => Err("type yes or no".to_owned()),
            },
            Self::One(choices) => choose(choices, line).map(Value::from),
            Self::Many(choices) => {
                let items = line.split(',').map(str::trim).filter(|item| !item.is_empty());
                items
                    .map(|item| match choices.is_empty() {
                        true => Ok(item.to_owned()),
                        false => choose(choices, item),
                    })
                    .collect::<Result<Vec<_>, _>>()
                    .map(Value::from)
            }
        }
    }

    fn words(&self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Integer => "whole number",
            Self::Number => "number",
            Self::Boolean => "yes or no",
            Self::One(_) => "one of the above",
            Self::Many(_) => "some, separated by commas",
        }
    }
}

/// The values of `enum`, or of `oneOf`/`anyOf` with `const` and `title`.
fn choices(schema: &Value) -> Option<Vec<Choice>> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let titles = schema.get("enumNames").and_then(Value::as_array);
        return values
            .iter()
            .enumerate()
            .map(|(at, value)| {
                let value = text(value)?;
                let title = titles.and_then(|titles| titles.get(at)).and_then(text);
                Some(Choice { title: title.unwrap_or_else(|| value.clone()), value })
            })
            .collect();
    }
    let titled = schema.get("oneOf").or_else(|| schema.get("anyOf"))?.as_array()?;
    titled
        .iter()
        .map(|item| {
            let value = item.get("const").and_then(text)?;
            let title = item.get("title").and_then(text);
            Some(Choice { title: title.unwrap_or_else(|| value.clone()), value })
        })
        .collect()
}

/// A value by itself, by its title, or by its number.
fn choose(choices: &[Choice], typed: &str) -> Result<String, String> {
    let named = choices.iter().find(|choice| choice.value == typed || choice.title == typed);
    let number = typed.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    named
        .or_else(|| choices.get(number?))
        .map(|choice| choice.value.clone())
        .ok_or_else(|| format!("type a number from 1 to {}, or one of the values", choices.len()))
}

#[cfg(test)]
mod tests;
