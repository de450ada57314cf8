//! One value as it was written, in a file or in an environment variable, and the readings that settings make of it.
//!
//! Every reading either gives a good value or the words for what would have been one.

use std::{net::SocketAddr, ops::RangeInclusive, path::PathBuf};

use serde_json::{Map, Value};
use toml::de::{DeInteger, DeValue};

use super::{Listener, Secret};

/// What would be right, as it goes after "give".
pub(super) type Expected = String;

/// A value before it was read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Raw<'a> {
    /// From the environment: text only, so numbers and lists are parsed out of it.
    Text(&'a str),
    /// From a file: has a type of its own.
    Toml(&'a DeValue<'a>),
}

impl Raw<'_> {
    /// The value in the words of an error, shortened.
    pub(super) fn given(&self) -> String {
        match self {
            Self::Text(text) => quoted(text),
            Self::Toml(DeValue::String(text)) => quoted(text),
            Self::Toml(DeValue::Integer(integer)) => integer.as_str().to_owned(),
            Self::Toml(DeValue::Float(float)) => float.as_str().to_owned(),
            Self::Toml(DeValue::Boolean(boolean)) => boolean.to_string(),
            Self::Toml(DeValue::Datetime(datetime)) => datetime.to_string(),
            Self::Toml(DeValue::Array(_)) => "a list".to_owned(),
            Self::Toml(DeValue::Table(_)) => "a table".to_owned(),
        }
    }

    /// A text that is not empty.
    pub(super) fn text(&self, expected: &str) -> Result<String, Expected> {
        match self.as_str() {
            Some(text) if !text.trim().is_empty() => Ok(text.to_owned()),
            _ => Err(expected.to_owned()),
        }
    }

    /// A text that may be empty.
    pub(super) fn any_text(&self, expected: &str) -> Result<String, Expected> {
        self.as_str().map(str::to_owned).ok_or_else(|| expected.to_owned())
    }

    /// A whole number within `range`; `unit` is what it counts.
    pub(super) fn integer(&self, range: RangeInclusive<u64>, unit: &str) -> Result<u64, Expected> {
        let number = match self {
            Self::Text(text) => text.trim().parse().ok(),
            Self::Toml(value) => value.as_integer().and_then(natural),
        };
        match number {
            Some(number) if range.contains(&number) => Ok(number),
            _ => Err(format!("a whole number of {unit} from {} to {}", range.start(), range.end())),
        }
    }

    /// The like of [`Raw::integer`] for sizes in memory.
    pub(super) fn size(&self, range: RangeInclusive<u64>, unit: &str) -> Result<usize, Expected> {
        let number = self.integer(range, unit)?;
        usize::try_from(number).map_err(|_| format!("a number of {unit} that fits this machine"))
    }

    /// `true` or `false`.
    pub(super) fn boolean(&self) -> Result<bool, Expected> {
        match self {
            Self::Text("true") | Self::Toml(DeValue::Boolean(true)) => Ok(true),
            Self::Text("false") | Self::Toml(DeValue::Boolean(false)) => Ok(false),
            _ => Err("true or false (without quotes)".to_owned()),
        }
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, Expected> {
        let known = self.as_str().and_then(|text| words.iter().find(|(word, _)| *word == text));
        match known {
            Some((_, value)) => Ok(*value),
            None => {
                let words: Vec<_> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
                Err(words.join(" or "))
            }
        }
    }

    /// A list of texts that `good` accepts; in the environment separated by commas.
    pub(super) fn list(&self, expected: &str, good: impl Fn(&str) -> bool) -> Result<Vec<String>, Expected> {
        let items: Option<Vec<String>> = match self {
            Self::Text(text) => Some(text.split(',').map(|item| item.trim().to_owned()).collect()),
            Self::Toml(DeValue::Array(items)) => {
                items.iter().map(|item| item.get_ref().as_str().map(str::to_owned)).collect()
            }
            Self::Toml(_) => None,
        };
        items.filter(|items| items.iter().all(|item| good(item))).ok_or_else(|| expected.to_owned())
    }

    /// One text or a list of them, not empty.
    pub(super) fn one_or_list(&self, expected: &str, good: impl Fn(&str) -> bool) -> Result<Vec<String>, Expected> {
        let items = match self {
            Self::Toml(DeValue::String(text)) => vec![text.to_string()],
            _ => self.list(expected, &good)?,
        };
        match !items.is_empty() && items.iter().all(|item| good(item)) {
            true => Ok(items),
            false => Err(expected.to_owned()),
        }
    }

    /// A path; whether it can be read is found out by whoever opens it.
    pub(super) fn path(&self, of: &str) -> Result<PathBuf, Expected> {
        self.text(&format!("the path of {of}")).map(PathBuf::from)
    }

    /// A text that is not shown again, of `least` bytes or more.
    pub(super) fn secret(&self, least: usize) -> Result<Secret, Expected> {
        match self.as_str() {
            Some(text) if text.len() >= least => Ok(Secret::new(text)),
            _ if least == 1 => Err("a text that is not empty".to_owned()),
            _ => Err(format!("a text of at least {least} bytes")),
        }
    }

    /// A listener's address.
    pub(super) fn address(&self) -> Result<SocketAddr, Expected> {
        let text = self.text(ADDRESS)?;
        address(&text)
    }

    /// A listener's address, or `off`.
    pub(super) fn listener(&self) -> Result<Listener, Expected> {
        let text = self.text(&format!("{ADDRESS}, or \"off\""))?;
        listener(&text)
    }

    /// An `http://` or `https://` URL with a host.
    pub(super) fn url(&self) -> Result<String, Expected> {
        let expected = "an http:// or https:// URL";
        let text = self.text(expected)?;
        match is_url(&text) {
            true => Ok(text),
            false => Err(expected.to_owned()),
        }
    }

    /// A table, as JSON.
    pub(super) fn object(&self, expected: &str) -> Result<Map<String, Value>, Expected> {
        match self {
            Self::Toml(value @ DeValue::Table(_)) => match json(value) {
                Some(Value::Object(object)) => Ok(object),
                _ => Err(expected.to_owned()),
            },
            _ => Err(expected.to_owned()),
        }
    }

    /// The text of a string value.
    pub(super) fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Toml(value) => value.as_str(),
        }
    }
}

const ADDRESS: &str = "IP:PORT, such as \"127.0.0.1:8080\"";

/// Reads the address of a listener; `localhost` is the loopback address.
///
/// # Errors
/// The words for what would be right.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    let numeric = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    numeric.as_deref().unwrap_or(text).parse().map_err(|_| match text.parse::<u16>() {
        Ok(port) => format!("IP:PORT, such as \"127.0.0.1:{port}\""),
        Err(_) => ADDRESS.to_owned(),
    })
}

/// Reads the address of a listener that may be `off`.
///
/// # Errors
/// The words for what would be right.
pub(super) fn listener(text: &str) -> Result<Listener, String> {
    match text {
        "off" => Ok(Listener::Off),
        _ => match address(text) {
            Ok(address) => Ok(Listener::At(address)),
            Err(expected) => Err(format!("{expected}, or \"off\"")),
        },
    }
}

/// Reads the name of a node.
///
/// # Errors
/// The words for what would be right.
pub(super) fn node_name(text: &str) -> Result<String, String> {
    let good = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    match (1..=64).contains(&text.len()) && text.chars().all(good) {
        true => Ok(text.to_owned()),
        false => Err("1 to 64 letters, digits, dots, hyphens or underscores".to_owned()),
    }
}

/// Whether a text is an absolute HTTP URL with a host.
pub(super) fn is_url(text: &str) -> bool {
    text.parse::<http::Uri>().is_ok_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some_and(|host| !host.is_empty())
    })
}

fn natural(integer: &DeInteger<'_>) -> Option<u64> {
    u64::from_str_radix(integer.as_str().trim_start_matches('+'), integer.radix()).ok()
}

/// `None` where JSON has no such number (`nan`, `inf`, integers beyond 64 bits).
fn json(value: &DeValue<'_>) -> Option<Value> {
    Some(match value {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Integer(integer) => Value::from(i64::from_str_radix(integer.as_str(), integer.radix()).ok()?),
        DeValue::Float(float) => Value::Number(serde_json::Number::from_f64(float.as_str().parse().ok()?)?),
        DeValue::Boolean(boolean) => Value::from(*boolean),
        DeValue::Datetime(datetime) => Value::from(datetime.to_string()),
        DeValue::Array(items) => Value::Array(items.iter().map(|item| json(item.get_ref())).collect::<Option<_>>()?),
        DeValue::Table(table) => Value::Object(
            table
                .iter()
                .map(|(key, value)| Some((key.get_ref().to_string(), json(value.get_ref())?)))
                .collect::<Option<_>>()?,
        ),
    })
}

fn quoted(text: &str) -> String {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}
