//! More runs than places: who starts when.

use crate::queue::Places;
use crate::worlds::{Bounds, Named, Part};

pub(super) const WORLD: Named = Named {
    name: "queue",
    about: "more runs than places, of several owners, that come, are called, start and go in every order",
    parts,
};

const REACHES: &[&str] =
    &["limit_holds", "no_place_idles", "turns_go_round", "first_come_first", "place_freed_once", "nothing_left_behind"];

fn parts(bounds: Bounds) -> Vec<Part> {
    let large = bounds == Bounds::Large;
    let places = |name, about, limit, owners: &[u8], again, back, reaches| {
        Part::Queue(Box::new(Places { name, about, limit, owners: owners.to_vec(), again, back, reaches }))
    };
    let one: &[u8] = if large { &[0, 0, 0, 0, 1, 1, 2, 2, 3] } else { &[0, 0, 0, 0, 1, 1, 2, 2] };
    let two: &[u8] = if large { &[0, 0, 0, 0, 0, 1, 1, 1, 2, 2] } else { &[0, 0, 0, 0, 0, 1, 1, 2] };
    let few: &[u8] = if large { &[0, 0, 0, 1, 1, 2] } else { &[0, 0, 1, 1] };
    vec![
        places("one_place", "several owners and one place", 1, one, 0, 0, REACHES),
        places("two_places", "an owner with many runs, others with few, and two places", 2, two, 0, 0, REACHES),
        places(
            "once_more",
            "runs that come twice, or come back after they have gone",
            1,
            few,
            2,
            2,
            &["here_once", "place_freed_once", "nothing_left_behind"],
        ),
    ]
}
