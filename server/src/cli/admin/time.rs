//! Times as people write and read them.

use std::time::Duration;

use prost_types::Timestamp;

/// Reads `90s`, `10m`, `2h`, `1d`, `500ms`.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let seconds = match unit {
        "ms" => None,
        "s" => Some(1),
        "m" => Some(60),
        "h" => Some(3600),
        "d" => Some(86_400),
        _ => return Err(WRONG.to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| WRONG.to_owned())?;
    match seconds {
        None => Ok(Duration::from_millis(number)),
        // More is no time that anybody means, and none that the protocol can say.
        Some(seconds) if number <= 1_000_000 => Ok(Duration::from_secs(number * seconds)),
        Some(_) => Err("that is too long".to_owned()),
    }
}

const WRONG: &str = "give a number and a unit, such as 500ms, 90s, 10m, 2h or 1d";

/// A moment in milliseconds since 1970.
pub(super) fn ms(at: Option<&Timestamp>) -> i64 {
    at.map_or(0, |at| at.seconds.saturating_mul(1000).saturating_add(i64::from(at.nanos) / 1_000_000))
}

/// How long before `now` something was: `3m12s`, and `in 3m12s` for what is to come.
pub(super) fn ago(now: Option<&Timestamp>, at: Option<&Timestamp>) -> String {
    let since = ms(now) - ms(at);
    if since < 0 { format!("in {}", length(since.unsigned_abs())) } else { length(since.unsigned_abs()) }
}

/// A length of time in its two largest units.
pub(super) fn length(ms: u64) -> String {
    let seconds = ms / 1000;
    let two = |large: u64, unit: &str, small: u64, below: &str| match small {
        0 => format!("{large}{unit}"),
        _ => format!("{large}{unit}{small}{below}"),
    };
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => two(seconds / 60, "m", seconds % 60, "s"),
        3600..86_400 => two(seconds / 3600, "h", seconds % 3600 / 60, "m"),
        _ => two(seconds / 86_400, "d", seconds % 86_400 / 3600, "h"),
    }
}

/// A moment as ISO 8601.
pub(super) fn iso(at: Option<&Timestamp>) -> String {
    tokkuri_core::time::Millis(u64::try_from(ms(at)).unwrap_or(0)).iso8601()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_unit() {
        for (text, ms) in [("500ms", 500), ("90s", 90_000), ("10m", 600_000), ("2h", 7_200_000), ("1d", 86_400_000)] {
            assert_eq!(parse(text).unwrap().as_millis(), ms, "{text}");
        }
        for text in ["", "10", "m", "-1s", "1.5h", "1 h", "99999999999999999999s", "9999999d"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn lengths_are_told_in_two_units() {
        for (ms, text) in
            [(0, "0s"), (59_999, "59s"), (60_000, "1m"), (192_000, "3m12s"), (7_260_000, "2h1m"), (90_000_000, "1d1h")]
        {
            assert_eq!(length(ms), text);
        }
        let at = |seconds| Some(Timestamp { seconds, nanos: 0 });
        assert_eq!(ago(at(100).as_ref(), at(40).as_ref()), "1m");
        assert_eq!(ago(at(40).as_ref(), at(100).as_ref()), "in 1m");
    }
}
