//! Wrong rules, and the claims that notice them. A check that cannot fail is no check.
//!
//! The rules are in core under the private `cfg(tokkuri_mutants)`: `RUSTFLAGS="--cfg tokkuri_mutants" cargo run --release -p
//! tokkuri-model -- mutants`.

use crate::worlds::SMALL;

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
    kills("one_live_attempt", "cancel", "take_over", "RestartKeepsAttempt"),
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
    kills("follower_gets_terminal", "follow", "expiry", "EndDroppedWithTask"),
    kills("follower_gets_terminal", "follow", "readings", "EndToldTwice"),
    kills("revision_monotonic", "follow", "readings", "OlderStateShown"),
    kills("latest_wins", "follow", "slow", "OldestUnreadKept"),
    kills("first_is_current", "follow", "slow", "FirstReadingStays"),
    kills("catches_up", "follow", "slow", "JoinerKnowsAll"),
    kills("stranger_sees_nothing", "follow", "strangers", "FollowerNotChecked"),
    kills("scope_needed", "follow", "strangers", "FollowersScopeNotChecked"),
    kills("shown_was_stored", "follow", "readings", "EffectsBeforeCommit"),
    kills("no_lost_wakeup", "follow", "readings", "EndWakesNobody"),
    kills("gone_is_told", "follow", "expiry", "GoneNotTold"),
    kills("gone_is_told", "follow", "expiry", "GoneShownAlive"),
    kills("gone_is_told", "follow", "created", "FedIsNeverAsked"),
    kills("catches_up", "follow", "two_tasks", "ToldIsNotAskedFor"),
    kills("turns_go_round", "follow", "two_tasks", "TurnStays"),
    kills("nothing_left_behind", "follow", "readings", "LeaverIsKept"),
    kills("limit_holds", "queue", "one_place", "WaiterFreesPlace"),
    kills("place_freed_once", "queue", "one_place", "GoneRunStarts"),
    kills("no_place_idles", "queue", "two_places", "CalledRunForgotten"),
    kills("turns_go_round", "queue", "one_place", "OneOwnerOnly"),
    kills("turns_go_round", "queue", "one_place", "NewcomerFirst"),
    kills("first_come_first", "queue", "two_places", "LastComeFirst"),
    kills("here_once", "queue", "once_more", "RunningComesAnew"),
    kills("nothing_left_behind", "queue", "once_more", "EmptyLineKept"),
    kills("lease_stays_lost", "cluster", "leases", "LostLeaseRevived"),
    kills("lease_loss_stops_runs", "cluster", "leases", "TrustedFromTheAnswer"),
    kills("lease_loss_stops_runs", "cluster", "leases", "ClocksThoughtEqual"),
    kills("lease_loss_stops_runs", "cluster", "three", "LeaseOutlived"),
    kills("lease_loss_stops_runs", "cluster", "three", "RunsOutliveTheLease"),
    kills("lease_stays_lost", "cluster", "three", "RejoinsAsItself"),
    kills("live_is_run", "cluster", "created", "StartsForTheLost"),
    kills("living_left_alone", "cluster", "leases", "LeaseOrphansTheLiving"),
    kills("drain_loses_nothing", "cluster", "drained", "DrainingTakesUp"),
    kills("drained_is_done", "cluster", "drained", "DrainedUnheard"),
    kills("stop_is_true", "cluster", "drained", "DrainHandsOverAtOnce"),
    kills("one_live_attempt", "cluster", "drained", "HandOverKeepsAttempt"),
    kills("rejection_is_inert", "cluster", "drained", "DoubtForgotten"),
    kills("runs_once", "cluster", "begun_once", "HandsOverWhatRunsOnce"),
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

/// The claims of all worlds, of those beside the frame with the world's name, that notice none of these.
pub fn idle(noticed: &[&Expected]) -> Vec<String> {
    let small = |row: &Expected| SMALL.iter().any(|(world, _)| *world == row.world);
    let of_frame = crate::frame::claim::all().into_iter().map(|claim| claim.name);
    let idle = of_frame.filter(|claim| !noticed.iter().any(|row| row.claim == *claim && !small(row)));
    let mut idle: Vec<_> = idle.map(str::to_owned).collect();
    for (world, claims) in SMALL {
        let claims = claims.iter().map(|claim| claim.name);
        let claims = claims.filter(|claim| !noticed.iter().any(|row| (row.world, row.claim) == (*world, *claim)));
        idle.extend(claims.map(|claim| format!("{claim} of {world}")));
    }
    idle
}

/// Puts wrong rules in force, each of these names or all, and looks for the claims that notice them.
#[cfg(tokkuri_mutants)]
pub fn run(names: &[String], mut each: impl FnMut(&Outcome)) -> Vec<Outcome> {
    use tokkuri_core::mutant::{Mutant, put_in_force};

    use crate::check::{Until, check};
    use crate::worlds::{Bounds, Part, find};

    let mut one = |mutant: &Mutant, expected: Expected| {
        let parts = find(expected.world).map(|world| (world.parts)(Bounds::Small)).unwrap_or_default();
        let part = parts.into_iter().find(|part| part.name() == expected.part);
        put_in_force(Some(*mutant));
        let scene = part.clone().and_then(|part| match part {
            Part::Tasks(scene) => Some(scene),
            Part::Inline(_) | Part::Follow(_) | Part::Queue(_) => None,
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
    let mut outcomes = Vec::new();
    for mutant in Mutant::ALL.iter().filter(|it| names.is_empty() || names.iter().any(|name| name == it.name())) {
        let rows = TABLE.iter().filter(|row| row.mutant == mutant.name());
        let before = outcomes.len();
        outcomes.extend(rows.map(|row| one(mutant, *row)));
        if outcomes.len() == before {
            outcomes.push(one(mutant, Expected { mutant: mutant.name(), claim: "none", world: "none", part: "none" }));
        }
    }
    outcomes
}
