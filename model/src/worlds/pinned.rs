//! How many distinct states each part has with small bounds.
//!
//! Whoever changes core or a scene sees here whether it changed what can happen. A number that moved without a reason is a fault,
//! of the model or of core.

/// World, part, distinct states.
pub const DISTINCT: &[(&str, &str, usize)] = &[
    ("cancel", "races", 36_587),
    ("cancel", "starting", 735_117),
    ("cancel", "expiry", 1_459_372),
    ("cancel", "two_sweeps", 19_324),
    ("cancel", "strangers", 4_320),
    ("cancel", "take_over", 992_258),
    ("input", "at_once", 114_348),
    ("input", "in_turn", 148_162),
    ("input", "inline", 203),
    ("input", "restarted", 889_053),
    ("create", "unheard", 192_174),
    ("create", "crashing", 1_352_006),
    ("quota", "creates", 78_929),
    ("quota", "ends", 1_256_696),
    ("cluster", "created", 128_679),
    ("cluster", "three", 666_725),
    ("cluster", "leases", 525_293),
    ("cluster", "drained", 485_738),
    ("cluster", "undrained", 328_613),
    ("cluster", "begun_once", 278_888),
    ("follow", "readings", 20_749),
    ("follow", "slow", 77_938),
    ("follow", "two_tasks", 111_018),
    ("follow", "expiry", 180_773),
    ("follow", "strangers", 276_298),
    ("follow", "created", 60_809),
    ("queue", "one_place", 139_047),
    ("queue", "two_places", 72_933),
    ("queue", "once_more", 7_897),
];

/// The pinned number of a part.
pub fn distinct(world: &str, part: &str) -> Option<usize> {
    DISTINCT.iter().find(|row| (row.0, row.1) == (world, part)).map(|row| row.2)
}
