//! Wrong rules, and the claims that notice them. A check that cannot fail is no check.
//!
//! The rules are in core under the private `cfg(tokkuri_mutants)`: `RUSTFLAGS="--cfg tokkuri_mutants" cargo run --release -p
//! tokkuri-model -- mutants`.

/// A wrong rule, by its name in `core/src/mutant.rs`, and the claim that has to notice it in a part of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The wrong rule.
    pub mutant: &'static str,
    /// The claim.
    pub claim: &'static str,
    /// The world.
    pub world: &'static str,
    /// The part of it.
    pub part: &'static str,
}

const fn kills(claim: &'static str, world: &'static str, part: &'static str, mutant: &'static str) -> Expected {
    Expected { mutant, claim, world, part }
}

/// Who notices what.
pub const TABLE: &[Expected] = &[
    kills("terminal_is_final", "cancel", "races", "LateResultWins"),
    kills("cancel_is_final", "cancel", "races", "CancelNotSticky"),
    kills("one_outcome", "cancel", "races", "CancelOverwritesEnd"),
    kills("ttl_not_early", "cancel", "expiry", "ResultNotKept"),
    kills("one_live_attempt", "cancel", "take_over", "FenceNotCompared"),
    kills("input_required_iff_pending", "input", "at_once", "StatusNeverWaits"),
    kills("ttl_not_early", "cancel", "strangers", "LivesAMomentLonger"),
    kills("first_answer_wins", "input", "in_turn", "LateAnswerRefused"),
    kills("first_answer_wins", "input", "at_once", "LastAnswerWins"),
    kills("rejection_is_inert", "input", "at_once", "RefusedHasEffects"),
    kills("rejection_is_inert", "input", "at_once", "MisfitAccepted"),
    kills("first_answer_wins", "input", "at_once", "AnswerNotStored"),
    kills("key_never_reused", "input", "in_turn", "KeyReused"),
    kills("terminal_is_final", "cancel", "take_over", "LossAfterTheEnd"),
    kills("orphan_ends", "cancel", "take_over", "RestartKeepsAttempt"),
    kills("key_never_reused", "input", "restarted", "RestartForgetsAnswers"),
    kills("orphan_ends", "create", "crashing", "OrphanLeftAlone"),
    kills("stranger_sees_nothing", "cancel", "strangers", "OwnerNotChecked"),
    kills("scope_needed", "cancel", "strangers", "ScopesNotChecked"),
    kills("effects_after_commit", "cancel", "races", "EffectsBeforeCommit"),
    kills("effects_after_commit", "cancel", "races", "ConflictIsSuccess"),
    kills("revision_monotonic", "cancel", "races", "RetryWithoutReload"),
    kills("live_is_run", "cancel", "two_sweeps", "DoubtIsNo"),
    kills("live_is_run", "cancel", "expiry", "EndGivesUp"),
    kills("no_ghost", "create", "unheard", "UnheardNotCancelled"),
    kills("cancel_reaches_run", "cancel", "starting", "NoReservation"),
    kills("cancel_reaches_run", "cancel", "starting", "EarlyReadingsAreLost"),
    kills("created_is_durable", "create", "unheard", "ReplyBeforeInsert"),
    kills("quota_holds", "quota", "creates", "QuotaOutsideTheInsert"),
    kills("live_is_run", "create", "unheard", "CreateForgetsStart"),
    kills("no_ghost", "create", "unheard", "DoubtfulCreateForgotten"),
    kills("place_given_back", "quota", "creates", "PlaceNotGivenBack"),
    kills("stop_is_true", "input", "restarted", "EarlierAttemptCounts"),
    kills("revision_monotonic", "input", "at_once", "OldReadingWins"),
    kills("cancel_reaches_run", "cancel", "races", "CancelStopsNoRun"),
    kills("cancel_reaches_run", "cancel", "expiry", "ClockIgnored"),
    kills("no_lost_wakeup", "input", "at_once", "NeverBehind"),
    kills("cancel_reaches_run", "cancel", "races", "LookSkipsTheMoment"),
    kills("revision_monotonic", "cancel", "races", "RevisionNotCompared"),
    kills("ttl_not_early", "quota", "ends", "RemovesTheEnded"),
    kills("quota_freed_once", "quota", "creates", "EndedHoldsPlace"),
    kills("quota_freed_once", "quota", "ends", "ExpiredHoldsPlace"),
    kills("first_answer_wins", "input", "inline", "LaterRoundWins"),
    kills("key_never_reused", "input", "inline", "GivenNotKept"),
    kills("key_never_reused", "input", "inline", "PreparedKeyIsFree"),
];

/// What came of one wrong rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The rule, and what was to notice it.
    pub expected: Expected,
    /// What the rule does wrong.
    pub says: &'static str,
    /// Distinct states until it was noticed; `None` if it survived.
    pub states: Option<usize>,
    /// How it was noticed, as a file that core's tests replay; `None` for a way that is not one through the frame.
    pub trace: Option<String>,
    /// How long that took, in milliseconds.
    pub elapsed_ms: u64,
}

/// Puts each wrong rule in force and looks for the claim that notices it.
#[cfg(tokkuri_mutants)]
pub fn run(mut each: impl FnMut(&Outcome)) -> Vec<Outcome> {
    use tokkuri_core::mutant::{Mutant, put_in_force};

    use crate::check::{Until, check};
    use crate::worlds::{Bounds, find};

    let one = |mutant: &Mutant| {
        let expected = TABLE.iter().find(|row| row.mutant == mutant.name());
        let expected =
            *expected.unwrap_or(&Expected { mutant: mutant.name(), claim: "none", world: "none", part: "none" });
        let parts = find(expected.world).map(|world| (world.parts)(Bounds::Small)).unwrap_or_default();
        let part = parts.into_iter().find(|part| part.name() == expected.part);
        put_in_force(Some(*mutant));
        let scene = part.clone().and_then(|part| match part {
            crate::worlds::Part::Tasks(scene) => Some(scene),
            crate::worlds::Part::Inline(_) => None,
        });
        let report = part.map(|part| check(part, Until::ViolationOf(expected.claim), |_| {}));
        let dead = |claim: &&crate::check::Violation| claim.claim == expected.claim;
        let found = report.as_ref().filter(|report| report.violations.iter().any(|it| dead(&it)));
        let outcome = Outcome {
            expected,
            says: mutant.says(),
            trace: scene.zip(found).and_then(|(scene, report)| {
                let violation = report.violations.iter().find(dead)?;
                Some(crate::regression::write(expected.world, &scene, violation))
            }),
            states: found.map(|report| report.distinct),
            elapsed_ms: report.as_ref().map_or(0, |report| report.elapsed_ms),
        };
        put_in_force(None);
        each(&outcome);
        outcome
    };
    Mutant::ALL.iter().map(one).collect()
}
