//! How deeply JSON text is nested, told in one pass and without a stack.
//!
//! What walks over values that it does not look at never notices how deep they are. Whoever reads them later, the tool or its
//! client, may do so by recursion.

/// Whether objects and arrays are nested more than `limit` levels deep in this JSON text. Of text that is not JSON it says one or
/// the other.
pub(crate) fn is_deeper(json: &[u8], limit: usize) -> bool {
    let mut depth = 0_usize;
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => {
                while let Some(byte) = bytes.next() {
                    match byte {
                        b'"' => break,
                        b'\\' => {
                            bytes.next();
                        }
                        _ => {}
                    }
                }
            }
            b'{' | b'[' => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn depth(value: &Value) -> usize {
        match value {
            Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
            Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(json!(1)), r#"[\[\]{}"\\a]{0,6}"#.prop_map(Value::from)];
        leaf.prop_recursive(6, 40, 3, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                proptest::collection::btree_map(r#"[\[\]{}"\\a]{0,3}"#, inner, 0..3)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn it_is_as_deep_as_it_is(value in values()) {
            let (text, depth) = (value.to_string(), depth(&value));
            prop_assert!(!is_deeper(text.as_bytes(), depth), "{}", text);
            prop_assert!(depth == 0 || is_deeper(text.as_bytes(), depth - 1), "{}", text);
        }

        #[test]
        fn what_is_no_json_does_not_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64), limit in 0..4usize) {
            let _ = is_deeper(&bytes, limit);
        }
    }

    #[test]
    fn a_million_levels_take_no_stack() {
        assert!(is_deeper(&[b'['; 1_000_000], 999_999));
        assert!(!is_deeper(&[b'['; 1_000_000], 1_000_000));
    }
}
