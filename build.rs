//! Compiles the proto files into Rust, without a system protoc, and keeps their descriptors for reflection.

// What cargo is told goes through standard output.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use prost::Message;

const ROOT: &str = "proto";
const FOLDER: &str = "proto/floodline/v1";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={FOLDER}");
    let files = proto_files(Path::new(FOLDER))?;
    let descriptors = protox::compile(&files, [ROOT])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("floodline_v1.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure().compile_fds(descriptors)?;
    Ok(())
}

/// Sorted, since the order of a folder's entries differs between machines and the output should not.
fn proto_files(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "proto") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
