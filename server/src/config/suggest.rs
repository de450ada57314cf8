//! "Did you mean": finds the known name that a mistyped one most likely stands for.

/// The nearest of `known` to `given`, if it is near enough to be a slip of the finger or a forgotten unit.
pub(crate) fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given = normal(given);
    known
        .into_iter()
        .filter_map(|candidate| {
            let name = normal(candidate);
            let distance = distance(&given, &name);
            let slack = (given.chars().count() / 3).max(1);
            // `ttl` for `ttl_ms`: the beginning is right, what is missing is the unit.
            let shortened = given.len() >= 3 && name.starts_with(&format!("{given}_"));
            (distance <= slack || shortened).then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The advice at the end of an "unknown name" line.
pub(super) fn advice(given: &str, known: &[&str], kind: &str) -> String {
    match nearest(given, known.iter().copied()) {
        Some(name) => format!("did you mean {name}?"),
        None => format!("{kind}: {}", known.join(", ")),
    }
}

fn normal(name: &str) -> String {
    name.to_ascii_lowercase().replace('-', "_")
}

/// Edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0usize; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    rows[0] = (0..=b.len()).collect();
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let replace = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replace.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_the_name_that_was_meant() {
        let known = ["ttl_ms", "keep_ms", "max_per_principal", "store", "token"];
        for (given, meant) in [
            ("tll_ms", Some("ttl_ms")),
            ("ttl", Some("ttl_ms")),
            ("TTL-MS", Some("ttl_ms")),
            ("max_per_principle", Some("max_per_principal")),
            ("stroe", Some("store")),
            ("colour", None),
            ("port", None),
        ] {
            assert_eq!(nearest(given, known), meant, "{given}");
        }
    }
}
