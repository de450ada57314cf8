//! Reads `TOKKURI_SECTION_KEY` variables into a [`Draft`].

use std::collections::BTreeMap;

use super::{
    ConfigError, Origin,
    file::Draft,
    raw::Raw,
    settings::{SECTIONS, Section},
    suggest,
};

/// Lays every variable that names a setting over `draft`.
///
/// An empty variable counts as not set, which is how shells and compose files spell it. A name that is nearly a
/// setting is a mistake; any other unknown name is left alone, since orchestrators put variables of their own
/// beside ours (`TOKKURI_GRPC_SERVICE_HOST` for a Kubernetes service named `tokkuri-grpc`).
pub(super) fn read(
    draft: &mut Draft,
    environment: impl IntoIterator<Item = (String, String)>,
) -> Result<(), ConfigError> {
    let ours: BTreeMap<String, String> =
        environment.into_iter().filter(|(name, value)| name.starts_with("TOKKURI_") && !value.is_empty()).collect();
    for (name, value) in &ours {
        let Some((section, key)) = split(name) else {
            continue;
        };
        let origin = Origin::Environment(name.clone());
        let Some(setting) = section.settings.iter().find(|setting| setting.key == key) else {
            let known = section.settings.iter().map(|setting| setting.key);
            match suggest::nearest(&key, known) {
                Some(near) => {
                    return Err(ConfigError::UnknownKey {
                        origin,
                        name: format!("{}.{key}", section.name),
                        advice: format!("did you mean {}?", variable(section, near)),
                    });
                }
                None => continue,
            }
        };
        let raw = Raw::Text(value);
        (setting.read)(draft, &raw).map_err(|expected| ConfigError::WrongValue {
            origin: origin.clone(),
            name: format!("{}.{key}", section.name),
            given: match setting.secret {
                true => "not a good value (not shown)".to_owned(),
                false => raw.given(),
            },
            expected,
        })?;
        draft.stated.insert(format!("{}.{key}", section.name), origin);
    }
    Ok(())
}

fn split(name: &str) -> Option<(&'static Section, String)> {
    let rest = name.strip_prefix("TOKKURI_")?.to_ascii_lowercase();
    let (section, key) = rest.split_once('_')?;
    let section = SECTIONS.iter().find(|known| known.name == section)?;
    Some((section, key.to_owned()))
}

fn variable(section: &Section, key: &str) -> String {
    format!("TOKKURI_{}_{}", section.name, key).to_ascii_uppercase()
}
