//! Embeds the page's simulator in the program: the one compiled by `make wasm` or included in a published package. If there
//! is none, an optimised build from a checkout compiles it. Rust's target for WebAssembly is optional: a build without it
//! prints nothing, and `sweetspot ui` gives the reason when it starts.

use std::env;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;

const TARGET: &str = "wasm32-unknown-unknown";

fn main() -> io::Result<()> {
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(variable("OUT_DIR")?);
    // The directory rather than the file: while the file is missing, cargo would rerun this every time.
    println!("cargo::rerun-if-changed=wasm");
    println!("cargo::rerun-if-changed=build.rs");
    let ready = here.join("wasm/sweetspot.wasm");
    let content = if ready.exists() {
        fs::read(ready)?
    } else if variable("PROFILE")? == "release" {
        compiled(&here, &out).unwrap_or_else(|reason| {
            println!(
                "cargo::warning=the page of `sweetspot ui` gets no simulator of its own: {reason}; \
                 its server simulates for it"
            );
            None
        })
        .unwrap_or_default()
    } else {
        Vec::new()
    };
    // An empty simulator stays empty.
    let content = if content.is_empty() { content } else { compressed(&content)? };
    fs::write(out.join("sweetspot.wasm.gz"), content)
}

/// Compresses to about a third of the size.
fn compressed(content: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content)?;
    encoder.finish()
}

/// The simulator, compiled from the checkout that `here` is in; `None` without Rust's target for it.
fn compiled(here: &Path, out: &Path) -> Result<Option<Vec<u8>>, String> {
    let crates = here.parent().filter(|crates| crates.join("wasm/Cargo.toml").exists());
    let crates = crates.ok_or("this package carries none")?;
    // The simulator depends on most of the pure crates.
    println!("cargo::rerun-if-changed={}", crates.display());
    if !target_is_installed()? {
        return Ok(None);
    }
    // A separate target directory: cargo holds the lock on the other one.
    let place = out.join("page");
    let mut cargo = Command::new(variable("CARGO").map_err(|error| error.to_string())?);
    cargo.args(["build", "--quiet", "--profile", "page", "--locked", "--lib"]);
    cargo.args(["--package", "sweetspot-wasm", "--target", TARGET, "--target-dir"]).arg(&place);
    // Flags for the program's target, and clippy's, do not apply to the page.
    for name in ["CARGO_ENCODED_RUSTFLAGS", "RUSTFLAGS", "RUSTC_WORKSPACE_WRAPPER"] {
        cargo.env_remove(name);
    }
    let status = cargo.current_dir(crates).status().map_err(|error| error.to_string())?;
    if !status.success() {
        return Err(format!("cargo could not compile it ({status})"));
    }
    let file = place.join(TARGET).join("page/sweetspot_wasm.wasm");
    fs::read(&file).map(Some).map_err(|error| format!("{}: {error}", file.display()))
}

fn target_is_installed() -> Result<bool, String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let printed =
        Command::new(rustc).args(["--print", "target-libdir", "--target", TARGET]).output();
    let printed = printed.map_err(|error| format!("rustc: {error}"))?;
    Ok(Path::new(String::from_utf8_lossy(&printed.stdout).trim()).is_dir())
}

fn variable(name: &str) -> io::Result<String> {
    env::var(name).map_err(|error| io::Error::other(format!("{name}: {error}")))
}
