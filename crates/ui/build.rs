//! Takes the simulator for the page into the program, where `make wasm` has compiled it.

use std::path::Path;
use std::{env, fs};

fn main() -> std::io::Result<()> {
    let here = env::var("CARGO_MANIFEST_DIR").map_err(std::io::Error::other)?;
    let out = env::var("OUT_DIR").map_err(std::io::Error::other)?;
    // The directory, not the file: cargo would start anew each time while that is missing.
    println!("cargo::rerun-if-changed=wasm");
    let compiled = Path::new(&here).join("wasm/sweetspot.wasm");
    let content = if compiled.exists() { fs::read(compiled)? } else { Vec::new() };
    fs::write(Path::new(&out).join("sweetspot.wasm"), content)
}
