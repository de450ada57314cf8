//! Compiles the protocol files into Rust, and into the descriptors that reflection hands out.

use std::error::Error;
use std::path::PathBuf;

use prost::Message as _;

fn main() -> Result<(), Box<dyn Error>> {
    let files = ["tokkuri/v1/admin.proto", "tokkuri/v1/peer.proto"];
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("proto");
    println!("cargo:rerun-if-changed=proto");
    for file in files {
        println!("cargo:rerun-if-changed=proto/{file}");
    }
    let descriptors = protox::compile(files, [root])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure()
        .emit_rerun_if_changed(false)
        .build_transport(false)
        // Sorted, so that what is printed of them is the same every time.
        .btree_map(".tokkuri.v1")
        .compile_fds(descriptors)?;
    Ok(())
}
