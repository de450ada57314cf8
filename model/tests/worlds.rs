//! The worlds: their numbers of states are pinned, and each claim has a part that reaches its premise.

use std::collections::BTreeSet;

use tokkuri_model::check::{Until, check};
use tokkuri_model::frame::claim;
use tokkuri_model::worlds::{ALL, Bounds, Part, pinned};

/// What can be explored in a second or two, also without optimization; `tokkuri-model check` holds all parts to their pins.
const QUICK: &[&str] = &["races", "strangers", "two_sweeps", "inline"];

#[test]
fn the_distinct_states_of_the_quick_parts_are_the_pinned_ones() {
    let mut checked = 0;
    for world in ALL {
        for part in (world.parts)(Bounds::Small) {
            let name = part.name();
            let pin = pinned::distinct(world.name, name);
            assert!(pin.is_some(), "{}/{name} is not pinned", world.name);
            if QUICK.contains(&name) {
                let report = check(part, Until::AnyViolation, |_| {});
                assert!(report.is_ok(), "{}/{name}: {report:#?}", world.name);
                assert_eq!(Some(report.distinct), pin, "{}/{name}", world.name);
                checked += 1;
            }
        }
    }
    assert_eq!(checked, QUICK.len());
}

#[test]
fn every_claim_has_a_part_that_has_to_reach_its_premise() {
    let mut reached = BTreeSet::new();
    for world in ALL {
        for part in (world.parts)(Bounds::Small) {
            if let Part::Tasks(scene) = part {
                reached.extend(scene.reaches.iter().copied());
            }
        }
    }
    for claim in claim::all() {
        assert!(reached.contains(claim.name), "no part has to reach the premise of {}", claim.name);
    }
}
