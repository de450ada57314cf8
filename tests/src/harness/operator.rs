//! What operators see: the admin listener, and a strict reader of Prometheus' text format 0.0.4.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use reqwest::Method;

use super::{DEADLINE, LOOK_AGAIN, Server};

/// What the admin listener answered.
#[derive(Clone, Debug)]
pub struct Page {
    /// HTTP status.
    pub status: u16,
    /// HTTP headers.
    pub headers: reqwest::header::HeaderMap,
    /// The body.
    pub body: String,
}

/// Numbers by name and labels.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scrape {
    samples: BTreeMap<(String, Labels), f64>,
}

type Labels = BTreeMap<String, String>;

impl Server {
    /// Asks the admin listener.
    ///
    /// # Panics
    /// If there is none, or it does not answer.
    pub async fn admin_get(&self, path: &str, headers: &[(&str, &str)]) -> Page {
        self.try_admin(Method::GET, path, headers).await.expect("an answer of the admin listener")
    }

    /// The same with another method.
    ///
    /// # Errors
    /// If it does not answer.
    ///
    /// # Panics
    /// If there is none.
    pub async fn try_admin(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Result<Page, reqwest::Error> {
        let admin = self.admin().expect("an admin listener");
        let mut request = reqwest::Client::new().request(method, format!("http://{admin}{path}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Ok(Page { status, headers, body: response.text().await? })
    }

    /// Reads `/metrics` of all nodes, and adds them up.
    ///
    /// # Panics
    /// If one breaks the format.
    pub async fn scrape(&self) -> Scrape {
        let mut sum = Scrape::default();
        for node in self.each() {
            let page = node.admin_get("/metrics", &[]).await;
            assert_eq!(page.status, 200, "{}", page.body);
            assert_eq!(page.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
            sum.add(Scrape::read(&page.body));
        }
        sum
    }

    /// Reads `/metrics` until they are as they should be: a number is counted a moment after what it counts was answered.
    ///
    /// # Panics
    /// If that does not come to be; with the last numbers.
    pub async fn scrape_until(&self, what: &str, done: impl Fn(&Scrape) -> bool) -> Scrape {
        let start = Instant::now();
        loop {
            let scrape = self.scrape().await;
            if done(&scrape) {
                return scrape;
            }
            assert!(start.elapsed() < DEADLINE, "waited for {what}; at last: {:#?}", scrape.nonzero());
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}

impl Scrape {
    /// One number.
    ///
    /// # Panics
    /// If there is none of this name with exactly these labels.
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let key = (name.to_owned(), labels);
        *self.samples.get(&key).unwrap_or_else(|| panic!("there is no {key:?}; {:?}", self.samples.keys()))
    }

    /// The sum of all numbers of one name.
    pub fn sum(&self, name: &str) -> f64 {
        self.samples.iter().filter(|((sample, _), _)| sample == name).map(|(_, value)| value).sum()
    }

    fn add(&mut self, other: Self) {
        for (name, value) in other.samples {
            *self.samples.entry(name).or_default() += value;
        }
    }

    /// All that is not 0.
    pub fn nonzero(&self) -> BTreeMap<String, f64> {
        let seen = self.samples.iter().filter(|(_, value)| **value != 0.0);
        seen.map(|((name, labels), value)| (format!("{name}{labels:?}"), *value)).collect()
    }

    /// Reads a text, and holds it to the format and to the customs of names.
    ///
    /// # Panics
    /// On the first line that breaks them.
    pub fn read(text: &str) -> Self {
        assert!(text.ends_with('\n'), "the last line ends");
        let mut families: BTreeMap<String, Family> = BTreeMap::new();
        let mut samples = BTreeMap::new();
        let mut current = String::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            if let Some(comment) = line.strip_prefix("# ") {
                let mut words = comment.splitn(3, ' ');
                let (keyword, name, rest) = (words.next(), words.next(), words.next());
                let (Some(keyword), Some(name), Some(rest)) = (keyword, name, rest) else { panic!("{line}") };
                if current != name {
                    assert!(!families.contains_key(name), "the lines of {name} stand together");
                    current = name.to_owned();
                }
                let family = families.entry(name.to_owned()).or_default();
                assert!(family.samples == 0, "{name} is described before its numbers: {line}");
                let told = match keyword {
                    "HELP" => family.help.replace(rest.to_owned()),
                    "TYPE" => family.kind.replace(rest.to_owned()),
                    _ => panic!("{line}"),
                };
                assert_eq!(told, None, "{line}");
            } else {
                let (name, labels, value) = sample(line).unwrap_or_else(|| panic!("no sample: {line}"));
                let family = families.get_mut(&current).unwrap_or_else(|| panic!("undescribed: {line}"));
                family.samples += 1;
                let kind = family.kind.as_deref().unwrap_or_else(|| panic!("untyped: {line}"));
                assert!(family.help.is_some(), "unexplained: {line}");
                assert!(belongs(&name, &current, kind), "{line} is not of the {kind} {current}");
                let twice = samples.insert((name, labels), value);
                assert_eq!(twice, None, "twice: {line}");
            }
        }
        for (name, family) in &families {
            let kind = family.kind.as_deref().unwrap_or_default();
            assert!(family.samples > 0, "{name} has no numbers");
            assert_eq!(name.ends_with("_total"), kind == "counter", "{name} is a {kind}");
            if kind == "histogram" {
                check_histogram(&samples, name);
            }
        }
        Self { samples }
    }
}

#[derive(Debug, Default)]
struct Family {
    help: Option<String>,
    kind: Option<String>,
    samples: usize,
}

/// Whether a sample of this name is one of the family's.
fn belongs(sample: &str, family: &str, kind: &str) -> bool {
    match kind {
        "counter" | "gauge" => sample == family,
        "histogram" => sample.strip_prefix(family).is_some_and(|end| ["_bucket", "_sum", "_count"].contains(&end)),
        _ => panic!("{family} is a {kind}"),
    }
}

/// Buckets hold no less than those below them, and the last one everything.
fn check_histogram(samples: &BTreeMap<(String, Labels), f64>, name: &str) {
    let mut series: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
    for ((_, labels), count) in samples.iter().filter(|((sample, _), _)| *sample == format!("{name}_bucket")) {
        let mut labels = labels.clone();
        let bound = labels.remove("le").unwrap_or_else(|| panic!("a bucket of {name} without a bound"));
        let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().expect("a bound is a number") };
        series.entry(labels).or_default().push((bound, *count));
    }
    assert!(!series.is_empty(), "{name} has no buckets");
    for (labels, mut buckets) in series {
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(buckets.is_sorted_by(|a, b| a.1 <= b.1), "{name}{labels:?}: {buckets:?}");
        let (bound, all) = *buckets.last().expect("a series has a bucket");
        assert_eq!((bound, Some(&all)), (f64::INFINITY, samples.get(&(format!("{name}_count"), labels.clone()))));
        assert!(samples.contains_key(&(format!("{name}_sum"), labels)), "{name} has no sum");
    }
}

fn sample(line: &str) -> Option<(String, Labels, f64)> {
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = Labels::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, quoted) = rest.split_once("=\"")?;
            let (value, behind) = unquoted(quoted)?;
            let good = is_name(label) && !label.contains(':') && labels.insert(label.to_owned(), value).is_none();
            assert!(good, "{line}");
            match behind.strip_prefix(',') {
                Some(more) => rest = more,
                None => {
                    rest = behind.strip_prefix('}')?;
                    break;
                }
            }
        }
    }
    let value = rest.strip_prefix(' ')?;
    (is_name(name) && !value.contains(' ')).then(|| Some((name.to_owned(), labels, value.parse().ok()?)))?
}

fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(match chars.next()?.1 {
                'n' => '\n',
                c @ ('\\' | '"') => c,
                _ => return None,
            }),
            _ => value.push(c),
        }
    }
    None
}

fn is_name(name: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    name.chars().all(good) && name.starts_with(|c: char| !c.is_ascii_digit())
}

/// The names of all families of a text.
pub fn families(text: &str) -> BTreeSet<String> {
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    types.map(|(name, _)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_by_name_and_labels() {
        let text = "# HELP a_total A.\n# TYPE a_total counter\na_total{x=\"1\\\"\"} 5\na_total{x=\"2\"} 1\n\
                    # HELP h H.\n# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\nh_sum 3.5\nh_count 2\n";
        let scrape = Scrape::read(text);
        assert_eq!(scrape.value("a_total", &[("x", "1\"")]), 5.0);
        assert_eq!((scrape.sum("a_total"), scrape.value("h_sum", &[])), (6.0, 3.5));
        let mut both = scrape.clone();
        both.add(Scrape::read(text));
        assert_eq!((both.value("a_total", &[("x", "2")]), both.value("h_count", &[])), (2.0, 4.0));
        assert_eq!(families(text), BTreeSet::from(["a_total".into(), "h".into()]));
    }

    #[test]
    fn what_breaks_the_format_is_noticed() {
        let head = "# HELP a_total A.\n# TYPE a_total counter\n";
        for wrong in [
            "a_total 1".to_owned(),
            "a_total 1\n".to_owned(),
            format!("{head}a_total 1"),
            format!("{head}a_total one\n"),
            format!("{head}a_total  1\n"),
            format!("{head}b_total 1\n"),
            format!("{head}a_total 1\na_total 2\n"),
            format!("{head}a_total{{x=1}} 1\n"),
            format!("{head}a_total{{x=\"1\"y=\"2\"}} 1\n"),
            format!("{head}a_total{{x=\"1\",x=\"2\"}} 1\n"),
            head.to_owned(),
            "# HELP a A.\n# TYPE a counter\na 1\n".to_owned(),
            "# HELP h H.\n# TYPE h histogram\nh_bucket{le=\"1\"} 3\nh_bucket{le=\"+Inf\"} 2\nh_sum 1\nh_count 2\n"
                .to_owned(),
            "# HELP h H.\n# TYPE h histogram\nh_bucket{le=\"+Inf\"} 2\nh_sum 1\nh_count 3\n".to_owned(),
        ] {
            assert!(std::panic::catch_unwind(|| Scrape::read(&wrong)).is_err(), "{wrong}");
        }
    }
}
