//! The worlds: their numbers of states are pinned, and each claim has a part that reaches its premise.

use std::collections::BTreeSet;

use tokkuri_model::check::{Until, check};
use tokkuri_model::frame::claim;
use tokkuri_model::small::Small;
use tokkuri_model::worlds::{ALL, Bounds, Part, SMALL, pinned};

/// What can be explored in a second or two, also without optimization; `tokkuri-model check` holds all parts to their pins.
const QUICK: &[(&str, &str)] = &[
    ("cancel", "races"),
    ("cancel", "strangers"),
    ("cancel", "two_sweeps"),
    ("input", "inline"),
    ("follow", "readings"),
    ("queue", "once_more"),
];

#[test]
fn the_distinct_states_of_the_quick_parts_are_the_pinned_ones() {
    let mut checked = 0;
    for world in ALL {
        for part in (world.parts)(Bounds::Small) {
            let name = part.name();
            let pin = pinned::distinct(world.name, name);
            assert!(pin.is_some(), "{}/{name} is not pinned", world.name);
            if QUICK.contains(&(world.name, name)) {
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
            let (of, reaches) = match &part {
                Part::Tasks(scene) => ("", scene.reaches),
                Part::Inline(inline) => ("inline", inline.reaches()),
                Part::Follow(listeners) => (world.name, listeners.reaches),
                Part::Queue(places) => (world.name, places.reaches),
            };
            reached.extend(reaches.iter().map(|claim| (of, *claim)));
        }
    }
    for claim in claim::all() {
        assert!(reached.contains(&("", claim.name)), "no part has to reach the premise of {}", claim.name);
    }
    for (world, claims) in SMALL {
        for claim in *claims {
            let name = claim.name;
            assert!(reached.contains(&(world, name)), "no part of {world} has to reach the premise of {name}");
        }
    }
}
