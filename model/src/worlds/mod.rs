//! The worlds: each a list of scenes, small and large.

mod cancel;
mod cluster;
mod create;
mod follow;
mod input;
pub mod pinned;
mod queue;
mod quota;

use crate::follow::Listeners;
use crate::frame::Scene;
use crate::frame::payload::Who;
use crate::frame::scene::{Request, What};
use crate::inline::Inline;
use crate::queue::Places;
use crate::small::Claim;

/// How large the scenes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Bounds {
    /// What CI checks: minutes.
    #[default]
    Small,
    /// What a long run checks.
    Large,
}

/// A world by its name.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// Its name.
    pub name: &'static str,
    /// What it is about.
    pub about: &'static str,
    /// Its parts.
    pub parts: fn(Bounds) -> Vec<Part>,
}

/// One part of a world, explored by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Tasks in the frame.
    Tasks(Box<Scene>),
    /// A call that asks on the request.
    Inline(Inline),
    /// Who follows tasks.
    Follow(Box<Listeners>),
    /// Who waits for a place.
    Queue(Box<Places>),
}

impl Part {
    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Tasks(scene) => scene.name,
            Self::Inline(_) => Inline::NAME,
            Self::Follow(listeners) => listeners.name,
            Self::Queue(places) => places.name,
        }
    }

    /// What it is about.
    pub fn about(&self) -> &'static str {
        match self {
            Self::Tasks(scene) => scene.about,
            Self::Inline(_) => Inline::ABOUT,
            Self::Follow(listeners) => listeners.about,
            Self::Queue(places) => places.about,
        }
    }
}

fn tasks<const N: usize>(scenes: [Scene; N]) -> Vec<Part> {
    scenes.into_iter().map(|scene| Part::Tasks(Box::new(scene))).collect()
}

/// All worlds.
pub const ALL: &[Named] =
    &[cancel::WORLD, input::WORLD, create::WORLD, quota::WORLD, cluster::WORLD, follow::WORLD, queue::WORLD];

/// The worlds beside the frame, and their own claims.
pub const SMALL: &[(&str, &[Claim])] = &[("follow", crate::follow::CLAIMS), ("queue", crate::queue::CLAIMS)];

/// The world of this name.
pub fn find(name: &str) -> Option<&'static Named> {
    ALL.iter().find(|world| world.name == name)
}

const fn ann(door: u8, what: What) -> Request {
    Request { door, who: Who::Ann, what }
}
