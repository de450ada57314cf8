//! What was found once never comes back: every file of `tests/regressions/` is a way through the machines that broke a claim.
//!
//! `tokkuri-model` writes them. They are replayed in the frame of its worlds, which knows core and nothing else and is taken in
//! here as source: a dependency on the model would point the wrong way.

#[allow(dead_code, unused_imports, unreachable_pub, reason = "the model uses all of it")]
#[path = "../../model/src/frame/mod.rs"]
mod frame;

use std::path::Path;

use frame::script::Script;

#[test]
fn nothing_that_was_found_comes_back() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/regressions");
    let mut files: Vec<_> =
        std::fs::read_dir(dir).expect("it is there").map(|it| it.expect("it is read").path()).collect();
    files.sort();
    assert!(!files.is_empty(), "there is something to replay");
    for file in files {
        let name = file.display();
        let text = std::fs::read_to_string(&file).expect("it is text");
        let script: Script = text.parse().unwrap_or_else(|error| panic!("{name}: {error}"));
        script.replay().unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}
