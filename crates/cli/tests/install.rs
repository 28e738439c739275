//! Tests README's make targets for newcomers.

use std::path::Path;
use std::process::Command;

type TestResult = Result<(), Box<dyn std::error::Error>>;

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// `make install` builds, and then does the same as `install-of` does with an existing program.
#[test]
fn installed_files_are_where_shells_and_man_look() -> TestResult {
    let prefix = tempfile::tempdir()?;
    let output = Command::new("make")
        .args(["install-of", concat!("PROGRAM=", env!("CARGO_BIN_EXE_sweetspot"))])
        .arg(format!("PREFIX={}", prefix.path().display()))
        .current_dir(root())
        .output()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for file in [
        "share/man/man1/sweetspot.1",
        "share/man/man1/sweetspot-run.1",
        "share/man/man5/sweetspot-scenario.5",
        "share/man/man7/sweetspot.7",
        "share/bash-completion/completions/sweetspot",
        "share/zsh/site-functions/_sweetspot",
        "share/fish/vendor_completions.d/sweetspot.fish",
    ] {
        let length = prefix.path().join(file).metadata().map_err(|e| format!("{file}: {e}"))?.len();
        assert!(length > 100, "{file} has {length} bytes");
    }
    let installed = Command::new(prefix.path().join("bin/sweetspot")).arg("--version").output()?;
    assert!(String::from_utf8(installed.stdout)?.starts_with("sweetspot "));
    Ok(())
}

#[test]
fn install_builds_first() -> TestResult {
    let output = Command::new("make").args(["-n", "install"]).current_dir(root()).output()?;
    let planned = String::from_utf8(output.stdout)?;
    let build = planned.find("cargo rustc --profile dist").ok_or("it does not build")?;
    let copy = planned.find("/bin/sweetspot").ok_or("it does not copy")?;
    assert!(build < copy, "{planned}");
    Ok(())
}
