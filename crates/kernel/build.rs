//! Compiles the BPF programs if a suitable clang exists. Clang is optional: without it the build prints nothing, and `tune
//! doctor` and `tune --via bpf` name the missing parts.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = "bpf/tune.bpf.c";
/// Where distributions install a compiler.
const PROGRAMS: [&str; 2] = ["/usr/bin", "/usr/local/bin"];

fn main() {
    println!("cargo::rustc-check-cfg=cfg(bpf_programs)");
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=SWEETSPOT_CLANG");
    println!("cargo::rerun-if-env-changed=PATH");
    if env::var_os("CARGO_FEATURE_BPF").is_none() {
        return;
    }
    let Some(out) = env::var_os("OUT_DIR").map(PathBuf::from) else { return };
    let object = out.join("tune.bpf.o");
    match compilers().find_map(|clang| compile(&clang, &object)) {
        Some(Ok(())) => println!("cargo::rustc-cfg=bpf_programs"),
        Some(Err(said)) => panic!("{SOURCE}: {said}"),
        // The next build notices a clang that is installed later.
        None => {
            PROGRAMS.iter().for_each(|directory| println!("cargo::rerun-if-changed={directory}"))
        }
    }
}

/// SWEETSPOT_CLANG alone, if it is set; otherwise the distributions' names for it.
fn compilers() -> Box<dyn Iterator<Item = String>> {
    match env::var("SWEETSPOT_CLANG") {
        Ok(named) => Box::new(std::iter::once(named)),
        Err(_) => {
            let versions = (11..=23).rev().map(|version| format!("clang-{version}"));
            Box::new(std::iter::once("clang".to_owned()).chain(versions))
        }
    }
}

/// `None` if there is no such compiler, or it has no BPF. The error is its message on the source.
fn compile(clang: &str, object: &Path) -> Option<Result<(), String>> {
    let targets = Command::new(clang).arg("--print-targets").output().ok()?;
    if !String::from_utf8_lossy(&targets.stdout).lines().any(|line| line.trim().starts_with("bpf "))
    {
        return None;
    }
    // The byte order of the target, not of the build host.
    let little = env::var("CARGO_CFG_TARGET_ENDIAN").is_ok_and(|endian| endian == "little");
    let run = Command::new(clang)
        .args(["-target", if little { "bpfel" } else { "bpfeb" }])
        .args(["-mcpu=v3", "-g", "-O2", "-Wall", "-Wextra", "-c", SOURCE, "-o"])
        .arg(object)
        .output();
    let output = run.ok()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Some(if output.status.success() { Ok(()) } else { Err(said) })
}
