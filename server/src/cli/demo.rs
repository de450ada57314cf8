//! `tokkuri demo`.

use crate::cli::{Exit, Stop};

pub(crate) async fn run() -> anyhow::Result<Exit> {
    Err(Stop::new(Exit::Failed, "demo is not built yet").into())
}
