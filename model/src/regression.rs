//! A violation as a file for `core/tests/regressions/`, which core's own tests replay for ever.

use crate::check::Violation;
use crate::frame::{Scene, script};

/// The text of the file.
pub fn write(world: &str, scene: &Scene, violation: &Violation) -> String {
    let found = format!("tokkuri-model check {world}/{}", scene.name);
    script::write(violation.claim, &found, &violation.why, scene, &violation.trace)
}
