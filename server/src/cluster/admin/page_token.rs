//! Where a list goes on. A token means nothing to whoever carries it, fits every node, and only the list that it is from.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use prost::Message as _;
use sha2::{Digest as _, Sha256};
use tokkuri_core::id::TaskId;
use tonic::Status;

use crate::cluster::proto::TaskFilter;
use crate::cluster::status::bad_field;

const ID: usize = 18;
const SEAL: usize = 12;

/// The token of the page after this task.
pub(super) fn write(last: TaskId, filter: &TaskFilter) -> String {
    let mut token = last.to_bytes().to_vec();
    token.extend(seal(last, filter));
    URL_SAFE_NO_PAD.encode(token)
}

/// The task after which the page begins; none for the first.
pub(super) fn read(token: &str, filter: &TaskFilter) -> Result<Option<TaskId>, Status> {
    if token.is_empty() {
        return Ok(None);
    }
    let wrong = || {
        bad_field(
            "page_token",
            "it is none of this list: give next_page_token of the page before as it was, with the same filter",
        )
    };
    let token: [u8; ID + SEAL] =
        URL_SAFE_NO_PAD.decode(token).ok().and_then(|token| token.try_into().ok()).ok_or_else(wrong)?;
    let (id, sealed) = token.split_at(ID);
    let last = TaskId::from_bytes(id.try_into().map_err(|_| wrong())?);
    match sealed == seal(last, filter) {
        true => Ok(Some(last)),
        false => Err(wrong()),
    }
}

/// Not a secret: it tells tokens that were mixed up, cut off or made up. A list shows an operator nothing that another token
/// would hide.
fn seal(last: TaskId, filter: &TaskFilter) -> [u8; SEAL] {
    let mut hash = Sha256::new();
    hash.update(b"tokkuri page 1");
    hash.update(last.to_bytes());
    hash.update(filter.encode_to_vec());
    let mut seal = [0; SEAL];
    seal.copy_from_slice(&hash.finalize()[..SEAL]);
    seal
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(tool: &str) -> TaskFilter {
        TaskFilter { tool: Some(tool.to_owned()), ..TaskFilter::default() }
    }

    #[test]
    fn a_token_goes_on_in_its_own_list_alone() {
        let id = TaskId::from_bytes([7; 18]);
        let token = write(id, &filter("a"));
        assert_eq!(read(&token, &filter("a")).unwrap(), Some(id));
        assert_eq!(read("", &filter("a")).unwrap(), None);
        let mut altered = token.clone().into_bytes();
        altered[3] ^= 1;
        let altered = String::from_utf8(altered).unwrap();
        for (wrong, tool) in
            [(&*token, "b"), (&altered, "a"), (&token[1..], "a"), ("no token", "a"), (&id.to_string(), "a")]
        {
            assert_eq!(read(wrong, &filter(tool)).unwrap_err().code(), tonic::Code::InvalidArgument, "{wrong}");
        }
    }
}
