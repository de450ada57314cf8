//! A scene as a stateright model.

use stateright::{Expectation, Model, Property};

use crate::frame::action::describe;
use crate::frame::model::MAX_CLAIMS;
use crate::frame::{Action, State, World};

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![self.beginning()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.possible(state, actions);
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        self.carry_out(state, action)
    }

    fn format_action(&self, action: &Action) -> String {
        format!("{action:?}")
    }

    fn format_step(&self, last: &State, action: Action) -> Option<String> {
        Some(describe(&self.scene, last, action))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let always = self.claims.iter().enumerate().map(|(at, claim)| Property {
            expectation: Expectation::Always,
            name: claim.name,
            condition: HOLDS[at],
        });
        let sometimes = self.claims.iter().enumerate().filter(|(_, claim)| self.scene.reaches.contains(&claim.name));
        let sometimes = sometimes.map(|(at, claim)| Property {
            expectation: Expectation::Sometimes,
            name: claim.premise,
            condition: REACHED[at],
        });
        always.chain(sometimes).collect()
    }
}

type Condition = fn(&World, &State) -> bool;

fn holds<const AT: usize>(world: &World, state: &State) -> bool {
    world.holds(AT, state)
}

fn reached<const AT: usize>(world: &World, state: &State) -> bool {
    world.is_reached(AT, state)
}

macro_rules! by_number {
    ($function:ident: $($at:literal)*) => { [$($function::<$at>,)*] };
}

/// stateright wants plain functions: these know their claim by its number.
const HOLDS: [Condition; MAX_CLAIMS] =
    by_number!(holds: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
const REACHED: [Condition; MAX_CLAIMS] =
    by_number!(reached: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
