//! What a configuration may ask for that this build does not do yet.

use super::Config;

/// The settings of `config` that this build cannot act upon, each as `setting: what is missing`.
///
/// A server refuses to start when this is not empty: better no server than one that is not guarded or kept as its
/// configuration says.
#[must_use]
pub fn unavailable(config: &Config) -> Vec<String> {
    let mut missing = Vec::new();
    let mut say = |setting: &str, what: &str| missing.push(format!("{setting}: {what}"));
    if !config.tools.is_empty() {
        say("[[tool]]", "command tools are not in this build; leave them out");
    }
    if !config.upstreams.is_empty() {
        say("[[upstream]]", "the gateway is not in this build; leave it out");
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_configuration_needs_nothing_that_is_missing() {
        assert_eq!(unavailable(&Config::default()), Vec::<String>::new());
    }

    #[test]
    fn each_setting_that_this_build_cannot_keep_is_named() {
        for (text, setting) in [
            ("tool = [{ name = 't', command = ['true'] }]", "[[tool]]"),
            ("upstream = [{ name = 'u', url = 'http://h/mcp' }]", "[[upstream]]"),
        ] {
            let config = Config::from_toml(text, "t.toml").unwrap();
            let missing = unavailable(&config);
            assert_eq!(missing.len(), 1, "{text}: {missing:?}");
            assert!(missing[0].starts_with(setting), "{missing:?}");
        }
    }

    #[test]
    fn every_store_is_there() {
        for store in ["memory", "sqlite:t.db", "postgres://h/d", "postgresql://u@h/d"] {
            let config = Config::from_toml(&format!("tasks.store = '{store}'"), "t").unwrap();
            assert_eq!(unavailable(&config), Vec::<String>::new(), "{store}");
        }
    }

    #[test]
    fn a_listener_that_is_off_needs_nothing() {
        let config = Config::from_toml("grpc.listen = 'off'\nadmin.listen = 'off'", "t").unwrap();
        assert!(unavailable(&config).is_empty());
    }
}
