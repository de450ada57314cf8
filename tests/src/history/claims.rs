//! What must always hold, as far as it shows outside. One file a claim, named as in the list of invariants.

pub mod cancel_is_final;
pub mod created_is_durable;
pub mod everything_ends;
pub mod first_answer_wins;
pub mod follower_gets_terminal;
pub mod input_required_iff_pending;
pub mod key_never_reused;
pub mod one_outcome;
pub mod only_retryable_errors;
pub mod orphan_ends;
pub mod quota_holds;
pub mod revision_monotonic;
pub mod stranger_sees_nothing;
pub mod terminal_is_final;

use super::Tasks;

/// What breaks one claim.
pub type Check = fn(&Tasks<'_>) -> Vec<String>;

/// All of them.
pub const ALL: [(&str, Check); 14] = [
    ("terminal_is_final", terminal_is_final::check),
    ("cancel_is_final", cancel_is_final::check),
    ("one_outcome", one_outcome::check),
    ("first_answer_wins", first_answer_wins::check),
    ("key_never_reused", key_never_reused::check),
    ("input_required_iff_pending", input_required_iff_pending::check),
    ("created_is_durable", created_is_durable::check),
    ("quota_holds", quota_holds::check),
    ("orphan_ends", orphan_ends::check),
    ("revision_monotonic", revision_monotonic::check),
    ("follower_gets_terminal", follower_gets_terminal::check),
    ("stranger_sees_nothing", stranger_sees_nothing::check),
    ("only_retryable_errors", only_retryable_errors::check),
    ("everything_ends", everything_ends::check),
];
