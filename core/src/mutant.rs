//! Wrong rules, to see whether anybody notices.
//!
//! Each is one line away from the right one, where `mutant!` names it. They are compiled in only under the private
//! `cfg(tokkuri_mutants)`, for `tokkuri-model mutants`, which puts one at a time in force and looks for the claim that it breaks.

use core::sync::atomic::{AtomicUsize, Ordering};

macro_rules! mutants {
    ($($name:ident $says:literal;)*) => {
        /// One wrong rule.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Mutant { $(#[doc = $says] $name,)* }

        impl Mutant {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Its name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            /// What it does.
            pub const fn says(self) -> &'static str {
                match self { $(Self::$name => $says,)* }
            }
        }
    };
}

mutants! {
    LateResultWins "a result is taken although the task was cancelled";
    CancelNotSticky "a cancel is acknowledged, and the task goes on";
    CancelOverwritesEnd "a cancel turns a result into a cancelled task";
    ResultNotKept "the end of a task does not raise its time to live";
    FenceNotCompared "the attempt of a writer is not compared";
    StatusNeverWaits "a task with an outstanding question says working";
    LivesAMomentLonger "a task is there for one moment more than its time to live";
    LateAnswerRefused "an answer to a cancelled task is refused";
    LastAnswerWins "an answer replaces an earlier one";
    RefusedHasEffects "a refused answer has effects";
    MisfitAccepted "an answer that does not fit is recorded";
    AnswerNotStored "an answer is acknowledged before it is counted as a change, so it is not stored";
    KeyReused "a key that was asked is asked again, and its answer forgotten";
    LossAfterTheEnd "a take-over fails a task that has ended";
    RestartKeepsAttempt "a restart does not count as a new attempt";
    RestartForgetsAnswers "a restart forgets what was asked and answered";
    OrphanLeftAlone "a take-over leaves alone what cannot be restarted";
    OwnerNotChecked "anybody may touch any task";
    ScopesNotChecked "the owner needs no scopes";
    EffectsBeforeCommit "effects and reply go out before the commit";
    ConflictIsSuccess "a conflict is taken for a commit";
    RetryWithoutReload "after a conflict the same change is written over the newer row";
    DoubtIsNo "a commit whose answer was lost is taken for one that was not made";
    DoubtForgotten "a write says that it was refused and changed nothing, though an earlier try of it may have been carried out";
    EndGivesUp "the end of a run is dropped when the store fails";
    UnheardNotCancelled "a task that nobody heard of is not cancelled";
    EarlyReadingsAreLost "what is read of a task before its run has started is lost";
    NoReservation "no place is reserved for a run before its task is stored";
    ReplyBeforeInsert "a create is answered before the insert";
    QuotaOutsideTheInsert "the quota is checked before the insert, not in it";
    CreateForgetsStart "a created task is not started";
    DoubtfulCreateForgotten "an insert whose answer was lost is not cleaned up";
    PlaceNotGivenBack "the place of a run whose create was refused is kept";
    EarlierAttemptCounts "a reading from before a take-over counts for the new attempt";
    OldReadingWins "a reading replaces a newer one";
    CancelStopsNoRun "a cancelled task's run is not told to stop";
    ClockIgnored "a run goes on after its task's time to live";
    NeverBehind "a look or a signal never makes a node ask the store";
    LookSkipsTheMoment "a look starts one moment after the last one";
    RevisionNotCompared "the store does not compare revisions";
    RemovesTheEnded "the store removes tasks that have ended before their time";
    EndedHoldsPlace "a task that has ended still counts";
    ExpiredHoldsPlace "a task that has expired still counts";
    LostLeaseRevived "the store revives a lease that ran out";
    TrustedFromTheAnswer "a node trusts its lease from the answer on, not from when it asked";
    ClocksThoughtEqual "a node trusts its lease to the last moment, as if no clock went slower than another";
    LeaseOutlived "a node goes on when its lease ran out and the store does not answer";
    RunsOutliveTheLease "runs go on when their node's lease is lost";
    RejoinsAsItself "a node that lost its lease begins again under its old id";
    StartsForTheLost "a node that lost its lease starts what was created before";
    LeaseOrphansTheLiving "the store takes a node's tasks for orphans a moment before its lease ran out";
    DrainingTakesUp "a node that drains goes on taking tasks over";
    DrainHandsOverAtOnce "a drain stops what runs before its time to wait is over";
    DrainedUnheard "a node without runs is taken for drained before it knows that it drains";
    HandOverKeepsAttempt "a hand-over does not count as a new attempt";
    HandsOverWhatRunsOnce "what must not run twice is handed over like the rest";
    LaterRoundWins "a later round's answer replaces an earlier one";
    GivenNotKept "an answer does not travel on to the next round";
    PreparedKeyIsFree "the body may use a key of prepare's";
    EndDroppedWithTask "an end that a follower did not take in time is dropped when its task is removed";
    EndToldTwice "a follower is shown the end of a task again and again";
    OlderStateShown "a follower is shown whatever was read last, older or not";
    OldestUnreadKept "a follower that has not read what it is owed is not owed what comes later";
    FirstReadingStays "until a follower has taken the first reading of a task, later ones are nothing to it";
    JoinerKnowsAll "whoever follows is thought to know what its node knows";
    FollowerNotChecked "whose task it is is not checked when it is shown";
    FollowersScopeNotChecked "which scopes a task needs is not checked when it is shown";
    EndWakesNobody "the end of a task is no news to those who wait for it";
    GoneNotTold "that a task is removed is not told to its followers";
    GoneShownAlive "a task is shown as it was although it is known to be removed";
    FedIsNeverAsked "what runs here is not asked for when its time to live is over";
    ToldIsNotAskedFor "a task of which something is known is not asked for at a look";
    TurnStays "whichever task a follower was told of last is asked first again";
    LeaverIsKept "a task that nobody follows any more is kept";
    WaiterFreesPlace "a run that goes while it waits frees a place";
    GoneRunStarts "a run that went while it waited is called all the same";
    CalledRunForgotten "a run that was called is not counted among those that have a place";
    OneOwnerOnly "an owner that was served is served again before all others";
    NewcomerFirst "an owner that begins to wait is served before those that wait already";
    LastComeFirst "the run of an owner that came last is called first";
    RunningComesAnew "a run that has a place and comes once more is sent to wait";
    EmptyLineKept "an owner whose last waiting run went keeps its turn";
}

/// 0 for none.
static IN_FORCE: AtomicUsize = AtomicUsize::new(0);

/// Puts one in force in this process, or none.
pub fn put_in_force(mutant: Option<Mutant>) {
    IN_FORCE.store(mutant.map_or(0, |mutant| mutant as usize + 1), Ordering::Relaxed);
}

pub(crate) fn is_on(mutant: Mutant) -> bool {
    IN_FORCE.load(Ordering::Relaxed) == mutant as usize + 1
}
