//! How many distinct states each part has with small bounds.
//!
//! Whoever changes core or a scene sees here whether it changed what can happen. A number that moved without a reason is a fault,
//! of the model or of core.

/// World, part, distinct states.
pub const DISTINCT: &[(&str, &str, usize)] = &[];

/// The pinned number of a part.
pub fn distinct(world: &str, part: &str) -> Option<usize> {
    DISTINCT.iter().find(|row| (row.0, row.1) == (world, part)).map(|row| row.2)
}
