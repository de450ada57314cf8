//! Reads a TOML file into a [`Draft`]: walks its tables, finds each key in the table of settings, keeps its line.

use std::{collections::BTreeMap, path::PathBuf};

use serde_json::json;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    Config, ConfigError, Jwks, Origin, Secret, TaskMode, ToolConfig,
    raw::Raw,
    settings::{SECTIONS, Setting, TOOL, UPSTREAM},
    suggest,
};

/// A configuration while it is being put together: complete settings are in `config`, those that only mean something
/// together wait beside it.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) config: Config,
    pub(super) tls: PairDraft,
    pub(super) grpc_tls: PairDraft,
    pub(super) auth: AuthDraft,
    pub(super) tools: Vec<(Origin, ToolDraft)>,
    pub(super) upstreams: Vec<(Origin, UpstreamDraft)>,
    /// Who stated which `section.key` last; also `section` alone for a section that a file opened.
    pub(super) stated: BTreeMap<String, Origin>,
}

#[derive(Debug, Default)]
pub(super) struct PairDraft {
    pub(super) cert: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
}

#[derive(Debug, Default)]
pub(super) struct AuthDraft {
    pub(super) issuer: Option<String>,
    pub(super) audience: Vec<String>,
    pub(super) jwks: Option<Jwks>,
    pub(super) hs256_secret: Option<Secret>,
    pub(super) required_scopes: Vec<String>,
}

#[derive(Debug)]
pub(super) struct ToolDraft {
    pub(super) name: Option<String>,
    pub(super) tool: ToolConfig,
}

impl Default for ToolDraft {
    fn default() -> Self {
        let any_object = json!({ "type": "object" });
        Self {
            name: None,
            tool: ToolConfig {
                name: String::new(),
                description: None,
                task: TaskMode::None,
                scopes: Vec::new(),
                command: Vec::new(),
                input_schema: any_object.as_object().cloned().unwrap_or_default(),
                timeout_ms: None,
                on_cancel_ms: 0,
                ttl_ms: None,
                poll_interval_ms: None,
            },
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct UpstreamDraft {
    pub(super) name: Option<String>,
    pub(super) url: Option<String>,
    pub(super) command: Option<Vec<String>>,
    pub(super) prefix: String,
    pub(super) task: Option<TaskMode>,
    pub(super) scopes: Vec<String>,
    pub(super) token_env: Option<String>,
}

impl Draft {
    /// Reads the whole of a file; `name` is what errors call it.
    pub(super) fn read(&mut self, text: &str, name: &str) -> Result<(), ConfigError> {
        let file = File { text, name };
        let document = DeTable::parse(text).map_err(|error| ConfigError::Syntax {
            origin: file.at(error.span().map_or(0, |span| span.start)),
            message: error.message().replace('\n', " "),
        })?;
        for (key, value) in in_order(document.get_ref()) {
            match key.get_ref().as_ref() {
                "tool" => {
                    for (origin, table) in file.entries("tool", value)? {
                        let mut tool = ToolDraft::default();
                        file.fill(&mut tool, "tool", TOOL, table, &mut |_, _| {})?;
                        self.tools.push((origin, tool));
                    }
                }
                "upstream" => {
                    for (origin, table) in file.entries("upstream", value)? {
                        let mut upstream = UpstreamDraft::default();
                        file.fill(&mut upstream, "upstream", UPSTREAM, table, &mut |_, _| {})?;
                        self.upstreams.push((origin, upstream));
                    }
                }
                _ => self.section(&file, key, value)?,
            }
        }
        Ok(())
    }

    fn section<'i>(&mut self, file: &File<'_>, key: &Key<'i>, value: &Spanned<DeValue<'i>>) -> Result<(), ConfigError> {
        let name = key.get_ref().as_ref();
        let Some(section) = SECTIONS.iter().find(|section| section.name == name) else {
            return Err(file.stray(key, value));
        };
        let DeValue::Table(table) = value.get_ref() else {
            return Err(file.wrong(name, value, format!("a section: [{name}] once, with its settings below")));
        };
        let mut stated = std::mem::take(&mut self.stated);
        stated.insert(name.to_owned(), file.at(key.span().start));
        let filled = file.fill(self, name, section.settings, table, &mut |key, origin| {
            stated.insert(format!("{name}.{key}"), origin);
        });
        self.stated = stated;
        filled
    }
}

type Key<'i> = Spanned<std::borrow::Cow<'i, str>>;

/// The entries of a table in the order of the file, so that the first mistake is the one that is told.
fn in_order<'t, 'i>(table: &'t DeTable<'i>) -> Vec<(&'t Key<'i>, &'t Spanned<DeValue<'i>>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// A file being read.
struct File<'a> {
    text: &'a str,
    name: &'a str,
}

impl File<'_> {
    fn at(&self, offset: usize) -> Origin {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        Origin::File { name: self.name.to_owned(), line: 1 + before.iter().filter(|byte| **byte == b'\n').count() }
    }

    /// Reads every key of `table` into `target`; tells `stated` of each.
    fn fill<T>(
        &self,
        target: &mut T,
        section: &str,
        settings: &[Setting<T>],
        table: &DeTable<'_>,
        stated: &mut dyn FnMut(&str, Origin),
    ) -> Result<(), ConfigError> {
        for (key, value) in in_order(table) {
            let name = key.get_ref().as_ref();
            let Some(setting) = settings.iter().find(|setting| setting.key == name) else {
                let known: Vec<_> = settings.iter().map(|setting| setting.key).collect();
                return Err(ConfigError::UnknownKey {
                    origin: self.at(key.span().start),
                    name: format!("{section}.{name}"),
                    advice: elsewhere(name, section)
                        .unwrap_or_else(|| suggest::advice(name, &known, &format!("[{section}] has"))),
                });
            };
            let origin = self.at(value.span().start);
            let raw = Raw::Toml(value.get_ref());
            (setting.read)(target, &raw).map_err(|expected| ConfigError::WrongValue {
                origin: origin.clone(),
                name: format!("{section}.{name}"),
                given: match setting.secret {
                    true => "not a good value (not shown)".to_owned(),
                    false => raw.given(),
                },
                expected,
            })?;
            stated(name, origin);
        }
        Ok(())
    }

    /// The tables of `[[name]]`.
    fn entries<'v, 'i>(
        &self,
        name: &str,
        value: &'v Spanned<DeValue<'i>>,
    ) -> Result<Vec<(Origin, &'v DeTable<'i>)>, ConfigError> {
        let expected = || format!("entries: [[{name}]] with two brackets, once for each");
        let DeValue::Array(items) = value.get_ref() else {
            return Err(self.wrong(name, value, expected()));
        };
        items
            .iter()
            .map(|item| match item.get_ref() {
                DeValue::Table(table) => Ok((self.at(item.span().start), table)),
                _ => Err(self.wrong(name, item, expected())),
            })
            .collect()
    }

    fn wrong(&self, name: &str, value: &Spanned<DeValue<'_>>, expected: String) -> ConfigError {
        ConfigError::WrongValue {
            origin: self.at(value.span().start),
            name: name.to_owned(),
            given: Raw::Toml(value.get_ref()).given(),
            expected,
        }
    }

    /// A name at the top of the file that is no section: a mistyped section, or a setting outside its section.
    fn stray(&self, key: &Key<'_>, value: &Spanned<DeValue<'_>>) -> ConfigError {
        let name = key.get_ref().to_string();
        let origin = self.at(key.span().start);
        let mut known: Vec<_> = SECTIONS.iter().map(|section| section.name).collect();
        known.extend(["tool", "upstream"]);
        match (value.get_ref(), elsewhere(&name, "")) {
            (DeValue::Table(_) | DeValue::Array(_), _) => {
                ConfigError::UnknownSection { origin, advice: suggest::advice(&name, &known, "there are"), name }
            }
            (_, Some(advice)) => ConfigError::UnknownKey { origin, name, advice },
            _ => ConfigError::UnknownKey {
                origin,
                advice: "every setting stands in a section, such as [server]".to_owned(),
                name,
            },
        }
    }
}

/// Advice for a key that is right but stands in the wrong section.
fn elsewhere(key: &str, here: &str) -> Option<String> {
    let mut homes = SECTIONS
        .iter()
        .filter(|section| section.name != here)
        .filter(|section| section.settings.iter().any(|setting| setting.key == key))
        .map(|section| format!("[{}]", section.name));
    let first = homes.next()?;
    let others: Vec<_> = std::iter::once(first).chain(homes).collect();
    Some(format!("it belongs into {}", others.join(" or ")))
}
