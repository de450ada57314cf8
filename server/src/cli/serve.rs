//! `tokkuri serve`.

use crate::{
    cli::{Exit, ServeArgs, Stop},
    config::Config,
};

pub(crate) async fn run(_config: Config, _args: &ServeArgs) -> anyhow::Result<Exit> {
    Err(Stop::new(Exit::Failed, "serve is not built yet").into())
}
