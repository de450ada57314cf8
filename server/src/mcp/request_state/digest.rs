//! A digest of JSON text that does not depend on how it is written: white space, the order of members, escapes in strings.
//!
//! Not by way of `serde_json::Value`: that would read two different integers of thirty digits as one number. Numbers count as written.

use std::borrow::Cow;

use sha2::{Digest as _, Sha256};

/// Nesting beyond which text counts as written; serde_json reads nothing deeper as a value either.
const MAX_DEPTH: usize = 128;

/// The digest of this JSON text. Text that is no JSON value has one as well: of itself.
pub(super) fn of(text: &str) -> [u8; 32] {
    let mut form = Vec::with_capacity(text.len() + 1);
    form.push(b'=');
    let mut reader = Reader { text, at: 0 };
    let whole = reader.value(&mut form, 0).filter(|()| {
        reader.space();
        reader.at == text.len()
    });
    if whole.is_none() {
        form.clear();
        form.push(b'!');
        form.extend_from_slice(text.as_bytes());
    }
    Sha256::digest(&form).into()
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn value(&mut self, form: &mut Vec<u8>, depth: usize) -> Option<()> {
        self.space();
        match self.peek()? {
            _ if depth > MAX_DEPTH => None,
            b'{' => self.object(form, depth),
            b'[' => self.array(form, depth),
            b'"' => {
                write(&self.string()?, form);
                Some(())
            }
            _ => {
                let rest = &self.text[self.at..];
                let end = rest.find([',', ']', '}', ' ', '\t', '\r', '\n']).unwrap_or(rest.len());
                form.extend_from_slice(&rest.as_bytes()[..end]);
                self.at += end;
                (end > 0).then_some(())
            }
        }
    }

    fn object(&mut self, form: &mut Vec<u8>, depth: usize) -> Option<()> {
        let mut members: Vec<(Cow<'a, str>, Vec<u8>)> = Vec::new();
        self.at += 1;
        self.space();
        while self.peek()? != b'}' {
            if !members.is_empty() {
                self.expect(b',')?;
                self.space();
            }
            let key = self.string()?;
            self.space();
            self.expect(b':')?;
            let mut value = Vec::new();
            self.value(&mut value, depth + 1)?;
            members.push((key, value));
            self.space();
        }
        self.at += 1;
        // A stable sort: of two members with one name, which is first still counts.
        members.sort_by(|a, b| a.0.cmp(&b.0));
        form.push(b'{');
        for (key, value) in members {
            write(&key, form);
            form.push(b':');
            form.extend_from_slice(&value);
            form.push(b',');
        }
        form.push(b'}');
        Some(())
    }

    fn array(&mut self, form: &mut Vec<u8>, depth: usize) -> Option<()> {
        self.at += 1;
        self.space();
        form.push(b'[');
        let mut first = true;
        while self.peek()? != b']' {
            if !std::mem::take(&mut first) {
                self.expect(b',')?;
            }
            self.value(form, depth + 1)?;
            form.push(b',');
            self.space();
        }
        self.at += 1;
        form.push(b']');
        Some(())
    }

    /// A string, unescaped where that gives text; a lone surrogate stays as it is written.
    fn string(&mut self) -> Option<Cow<'a, str>> {
        let rest = &self.text[self.at..];
        let bytes = rest.as_bytes();
        if bytes.first() != Some(&b'"') {
            return None;
        }
        let mut end = 1;
        loop {
            match bytes.get(end)? {
                b'"' => break,
                b'\\' => end += 2,
                _ => end += 1,
            }
        }
        self.at += end + 1;
        let inner = &rest[1..end];
        Some(match inner.contains('\\') {
            false => Cow::Borrowed(inner),
            true => serde_json::from_str(&rest[..=end]).map_or(Cow::Borrowed(&rest[..=end]), Cow::Owned),
        })
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

/// A text with its length before it, so that no text can pass for something else.
fn write(text: &str, form: &mut Vec<u8>) {
    form.push(b'"');
    form.extend_from_slice(text.len().to_string().as_bytes());
    form.push(b':');
    form.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn only_the_way_of_writing_does_not_count() {
        let same = [
            (r#"{"a":[1,{"x":null}],"b":"é"}"#, " { \"b\":\"\\u00e9\",\n\"a\" : [ 1 ,{ \"x\":null } ] } "),
            ("{}", " { } "),
            (r#"{"\u0061":1}"#, r#"{"a":1}"#),
        ];
        for (one, other) in same {
            assert_eq!(of(one), of(other), "{one} {other}");
        }
        let different = [
            (r#"{"a":123456789012345678901234567890}"#, r#"{"a":123456789012345678901234567891}"#),
            (r#"{"a":"1"}"#, r#"{"a":1}"#),
            (r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#),
            (r#"{"a":[[1],2]}"#, r#"{"a":[[1,2]]}"#),
            (r#"{"a":1,"a":2}"#, r#"{"a":2,"a":1}"#),
            (r#"{"a":"\ud800"}"#, r#"{"a":"\ud801"}"#),
            ("{", "{}"),
            ("{", "!{"),
            (r#"{"a":"b"}"#, r#"{"a":[]}"#),
        ];
        for (one, other) in different {
            assert_ne!(of(one), of(other), "{one} {other}");
        }
    }

    #[test]
    fn deep_nesting_is_digested_as_written() {
        let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
        assert_eq!(of(&deep), of(&deep));
        assert_ne!(of(&deep), of(&format!("{deep} ")));
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a\"\\\\{}:,é]{0,4}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map("[a-c\"\\\\:]{0,2}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn equal_values_and_only_those_have_one_digest(one in value(), other in value()) {
            let plain = one.to_string();
            prop_assert_eq!(of(&plain), of(&serde_json::to_string_pretty(&one).unwrap()));
            prop_assert_eq!(of(&plain) == of(&other.to_string()), one == other);
        }

        #[test]
        fn no_text_makes_it_panic(text in any::<String>(), json in "[\\[\\]{}:,\"\\\\a-é0-9 ]{0,40}") {
            let _ = (of(&text), of(&json));
        }
    }
}
