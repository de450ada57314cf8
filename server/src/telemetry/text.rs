//! Prometheus' text format, read back: our own registry gives nothing but text away.

/// One number.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The name of the metric; those of a histogram's samples end with `_bucket`, `_sum` and `_count`.
    pub name: String,
    /// Labels and their values.
    pub labels: Vec<(String, String)>,
    /// The number.
    pub value: f64,
}

/// The samples of a text that we wrote ourselves, ordered by name and labels. A line that is none is left out.
pub(super) fn samples(text: &str) -> Vec<Sample> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let mut samples: Vec<_> = lines.filter_map(sample).collect();
    // Stable: the buckets of a histogram stay in the order of their bounds.
    samples.sort_by(|a, b| a.name.cmp(&b.name).then_with(|| without_bound(a).cmp(without_bound(b))));
    samples
}

fn without_bound(sample: &Sample) -> impl Iterator<Item = &(String, String)> {
    sample.labels.iter().filter(|(name, _)| name != "le")
}

fn sample(line: &str) -> Option<Sample> {
    let (name, labels, value) = match line.split_once('{') {
        Some((name, rest)) => {
            let (labels, rest) = labels(rest)?;
            (name, labels, rest)
        }
        None => {
            let (name, value) = line.split_once(' ')?;
            (name, Vec::new(), value)
        }
    };
    Some(Sample { name: name.to_owned(), labels, value: value.trim().parse().ok()? })
}

/// `name="value",…}` and what stands behind it.
fn labels(mut rest: &str) -> Option<(Vec<(String, String)>, &str)> {
    let mut labels = Vec::new();
    loop {
        if let Some(rest) = rest.strip_prefix('}') {
            return Some((labels, rest));
        }
        rest = rest.strip_prefix(',').unwrap_or(rest);
        let (name, quoted) = rest.split_once("=\"")?;
        let (value, behind) = unquoted(quoted)?;
        labels.push((name.to_owned(), value));
        rest = behind;
    }
}

/// A value up to its closing quote, and what stands behind it.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(match chars.next()?.1 {
                'n' => '\n',
                other => other,
            }),
            _ => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_comes_back_as_it_was() {
        let text = "# HELP a b\n# TYPE a counter\na{x=\"1\",y=\"\\\"}\\\\,\\n\"} 5\n\nb 0.25\n";
        let labels = vec![("x".to_owned(), "1".to_owned()), ("y".to_owned(), "\"}\\,\n".to_owned())];
        let a = Sample { name: "a".into(), labels, value: 5.0 };
        let b = Sample { name: "b".into(), labels: Vec::new(), value: 0.25 };
        assert_eq!(samples(text), [a, b]);
    }

    #[test]
    fn buckets_keep_their_order() {
        let text = "h_bucket{r=\"b\",le=\"2\"} 1\nh_bucket{r=\"b\",le=\"10\"} 2\nh_bucket{r=\"a\",le=\"+Inf\"} 3\n";
        let values: Vec<_> = samples(text).iter().map(|sample| sample.value).collect();
        assert_eq!(values, [3.0, 1.0, 2.0]);
    }
}
