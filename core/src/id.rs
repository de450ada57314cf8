//! Identifiers. All of them come in from outside: core makes none up.

use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Text;

/// The name of a task: 144 bits that the host took from the operating system's randomness, written as 24 characters of
/// base64url (RFC 4648 §5, no padding is ever needed).
///
/// The tasks extension wants ids of high entropy, since an id may act as a bearer token (§ Security).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId([u8; 18]);

/// A text that is not a task id. It names no task, so callers answer as for an unknown one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a task id has 24 characters of base64url")]
pub struct NotATaskId;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl TaskId {
    /// How many characters a task id has on the wire.
    pub const TEXT_LEN: usize = 24;

    /// The id made of these 144 random bits.
    pub const fn from_bytes(bytes: [u8; 18]) -> Self {
        Self(bytes)
    }

    /// The bits that [`from_bytes`](Self::from_bytes) took.
    pub const fn to_bytes(self) -> [u8; 18] {
        self.0
    }

    /// The id as it goes on the wire, without an allocation.
    pub fn encoded(self) -> EncodedTaskId {
        let mut text = [0; Self::TEXT_LEN];
        for (three, four) in self.0.chunks_exact(3).zip(text.chunks_exact_mut(4)) {
            let bits = u32::from(three[0]) << 16 | u32::from(three[1]) << 8 | u32::from(three[2]);
            for (i, out) in four.iter_mut().enumerate() {
                *out = ALPHABET[(bits >> (18 - 6 * i) & 0x3f) as usize];
            }
        }
        EncodedTaskId(text)
    }
}

/// A [`TaskId`] written out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct EncodedTaskId([u8; TaskId::TEXT_LEN]);

impl EncodedTaskId {
    /// The 24 characters.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.0).expect("the alphabet is ASCII")
    }
}

impl fmt::Debug for EncodedTaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for TaskId {
    type Err = NotATaskId;

    fn from_str(text: &str) -> Result<Self, NotATaskId> {
        let text: &[u8; Self::TEXT_LEN] = text.as_bytes().try_into().map_err(|_| NotATaskId)?;
        let mut bytes = [0; 18];
        for (four, three) in text.chunks_exact(4).zip(bytes.chunks_exact_mut(3)) {
            let mut bits = 0_u32;
            for &c in four {
                bits = bits << 6 | u32::from(sextet(c).ok_or(NotATaskId)?);
            }
            three.copy_from_slice(&bits.to_be_bytes()[1..]);
        }
        Ok(Self(bytes))
    }
}

fn sextet(c: u8) -> Option<u8> {
    match c {
        b'A'..=b'Z' => Some(c - b'A'),
        b'a'..=b'z' => Some(c - b'a' + 26),
        b'0'..=b'9' => Some(c - b'0' + 52),
        b'-' => Some(62),
        b'_' => Some(63),
        _ => None,
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.encoded().as_str())
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.encoded().as_str())
    }
}

impl Serialize for TaskId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.encoded().as_str())
    }
}

impl<'de> Deserialize<'de> for TaskId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Text::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// One incarnation of a node: a number drawn anew at every start of a process and whenever a lease was lost, so that a node which
/// comes back is another one and its old runs are nobody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeId(pub u64);

impl NodeId {
    /// No node: it never holds a lease, so what is given to it is taken over by the next sweep of any node.
    pub const NOBODY: Self = Self(0);

    /// The id made of these random bits: never [`NOBODY`](Self::NOBODY).
    pub const fn drawn(bits: u64) -> Self {
        Self(if bits == Self::NOBODY.0 { 1 } else { bits })
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Which try at running a task this is. Every take-over makes it larger; only the newest attempt may write (the fence).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Attempt(pub u32);

impl Attempt {
    /// The attempt that a new task starts with.
    pub const FIRST: Self = Self(1);

    /// The attempt after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// How often a task has been stored. A commit names the revision it started from and is refused if the store has a newer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Revision(pub u64);

impl Revision {
    /// The revision of a task that was just created.
    pub const FIRST: Self = Self(1);

    /// The revision after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// The name of a question within its task: unique for the task's lifetime (tasks extension, § Input Requests).
pub type Key = Text;

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn an_id_is_its_text_and_back() {
        for bytes in [[0; 18], [0xff; 18], core::array::from_fn(|i| (i * 37) as u8)] {
            let id = TaskId::from_bytes(bytes);
            assert_eq!(id.to_string().len(), TaskId::TEXT_LEN);
            assert_eq!(id.to_string().parse(), Ok(id));
        }
    }

    #[test]
    fn what_is_not_an_id_is_refused() {
        for text in [
            "",
            "abc",
            "!!!!!!!!!!!!!!!!!!!!!!!!",
            "AAAAAAAAAAAAAAAAAAAAAAAAA",
            "AAAAAAAAAAAAAAAAAAAAAAA=",
            "ééééééééaaaaaaaa",
        ] {
            assert_eq!(text.parse::<TaskId>(), Err(NotATaskId), "{text:?}");
        }
    }
}
