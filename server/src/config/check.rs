//! The last look at a configuration: settings that only mean something together, entries that must differ.

use std::collections::BTreeSet;

use super::{
    AuthConfig, Config, ConfigError, KeyPair, Origin, Reach, TaskMode, TokenKeys, ToolConfig, UpstreamConfig,
    file::{Draft, PairDraft, ToolDraft, UpstreamDraft},
};

/// Makes a configuration of a draft.
pub(super) fn finish(mut draft: Draft) -> Result<Config, ConfigError> {
    draft.config.tls = pair(&draft, "tls", &draft.tls)?;
    draft.config.grpc.tls = pair(&draft, "grpc", &draft.grpc_tls)?;
    if draft.config.grpc.client_ca.is_some() && draft.config.grpc.tls.is_none() {
        return Err(missing(
            &draft,
            "grpc.client_ca",
            "grpc.client_ca needs grpc.cert and grpc.key: give both, or leave it out",
        ));
    }
    if draft.config.server.max_buffered_bytes < draft.config.server.max_body_bytes {
        let stated = match draft.stated.contains_key("server.max_buffered_bytes") {
            true => "server.max_buffered_bytes",
            false => "server.max_body_bytes",
        };
        let message =
            "server.max_buffered_bytes must be at least server.max_body_bytes: the largest body would never fit";
        return Err(missing(&draft, stated, message));
    }
    draft.config.auth = auth(&mut draft)?;
    let mut names = BTreeSet::new();
    for (origin, tool) in std::mem::take(&mut draft.tools) {
        let tool = finish_tool(&origin, tool)?;
        unique(&origin, &mut names, "tool", &tool.name)?;
        draft.config.tools.push(tool);
    }
    names.clear();
    for (origin, upstream) in std::mem::take(&mut draft.upstreams) {
        let upstream = finish_upstream(&origin, upstream)?;
        unique(&origin, &mut names, "upstream", &upstream.name)?;
        draft.config.upstreams.push(upstream);
    }
    Ok(draft.config)
}

fn pair(draft: &Draft, section: &str, pair: &PairDraft) -> Result<Option<KeyPair>, ConfigError> {
    let (there, absent) = match (&pair.cert, &pair.key) {
        (Some(cert), Some(key)) => {
            return Ok(Some(KeyPair { cert: cert.clone(), key: key.clone() }));
        }
        // An empty [tls] says that TLS is wanted; [grpc] alone says nothing of the kind.
        (None, None) if section == "tls" && draft.stated.contains_key("tls") => {
            return Err(missing(draft, "tls", "[tls] needs cert and key"));
        }
        (None, None) => return Ok(None),
        (Some(_), None) => ("cert", "key"),
        (None, Some(_)) => ("key", "cert"),
    };
    Err(missing(draft, &format!("{section}.{there}"), &format!("{section}.{there} needs {section}.{absent} beside it")))
}

fn auth(draft: &mut Draft) -> Result<Option<AuthConfig>, ConfigError> {
    let Some(stated) = draft.stated.keys().find(|name| *name == "auth" || name.starts_with("auth.")).cloned() else {
        return Ok(None);
    };
    let auth = std::mem::take(&mut draft.auth);
    let Some(issuer) = auth.issuer else {
        return Err(missing(draft, &stated, "[auth] needs issuer: the iss of accepted tokens"));
    };
    if auth.audience.is_empty() {
        return Err(missing(draft, &stated, "[auth] needs audience: this server's canonical URI"));
    }
    let keys = match (auth.jwks, auth.hs256_secret) {
        (Some(jwks), None) => TokenKeys::Jwks(jwks),
        (None, Some(secret)) => TokenKeys::Hs256(secret),
        (None, None) => {
            return Err(missing(draft, &stated, "[auth] needs jwks or hs256_secret"));
        }
        (Some(_), Some(_)) => {
            return Err(missing(
                draft,
                "auth.hs256_secret",
                "auth.jwks and auth.hs256_secret exclude each other: leave one out",
            ));
        }
    };
    Ok(Some(AuthConfig { issuer, audience: auth.audience, keys, required_scopes: auth.required_scopes }))
}

fn finish_tool(origin: &Origin, draft: ToolDraft) -> Result<ToolConfig, ConfigError> {
    let Some(name) = draft.name else {
        return Err(inconsistent(origin, "[[tool]] needs name".to_owned()));
    };
    if draft.tool.command.is_empty() {
        let message = format!("tool {name:?} needs command: [\"program\", \"argument\", …]");
        return Err(inconsistent(origin, message));
    }
    Ok(ToolConfig { name, ..draft.tool })
}

fn finish_upstream(origin: &Origin, draft: UpstreamDraft) -> Result<UpstreamConfig, ConfigError> {
    let Some(name) = draft.name else {
        return Err(inconsistent(origin, "[[upstream]] needs name".to_owned()));
    };
    let reach = match (draft.url, draft.command) {
        (Some(url), None) => Reach::Url(url),
        (None, Some(command)) => Reach::Command(command),
        (None, None) => {
            return Err(inconsistent(origin, format!("upstream {name:?} needs url or command")));
        }
        (Some(_), Some(_)) => {
            let message = format!("upstream {name:?} has url and command: leave one out");
            return Err(inconsistent(origin, message));
        }
    };
    Ok(UpstreamConfig {
        name,
        reach,
        prefix: draft.prefix,
        task: draft.task.unwrap_or(TaskMode::Optional),
        scopes: draft.scopes,
        token_env: draft.token_env,
    })
}

fn unique(origin: &Origin, names: &mut BTreeSet<String>, kind: &str, name: &str) -> Result<(), ConfigError> {
    match names.insert(name.to_owned()) {
        true => Ok(()),
        false => Err(inconsistent(origin, format!("there is a second {kind} named {name:?}: give each its own name"))),
    }
}

fn missing(draft: &Draft, stated: &str, message: &str) -> ConfigError {
    let origin = draft.stated.get(stated).cloned();
    let origin = origin.unwrap_or_else(|| Origin::Environment(stated.to_owned()));
    inconsistent(&origin, message.to_owned())
}

fn inconsistent(origin: &Origin, message: String) -> ConfigError {
    ConfigError::Inconsistent { origin: origin.clone(), message }
}
