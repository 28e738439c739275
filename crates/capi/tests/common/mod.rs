//! Compiles C programs against the library that cargo built for the tests.

#![allow(dead_code)] // each test program uses a part

use std::path::{Path, PathBuf};
use std::process::Command;

use sweetspot_testing::skipped;

/// The system libraries that the static library needs (`cargo rustc -- --print native-static-libs`).
pub const SYSTEM_LIBRARIES: [&str; 6] = ["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"];

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The directory of the libraries that cargo built for this test.
pub fn libraries() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().to_owned()
}

/// Compiles a program with these linker options; `None` without a compiler.
pub fn compile(source: &str, to: &Path, linked: &[String]) -> Option<PathBuf> {
    let program = to.join("program");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pthread", "-I"]);
    cc.arg(root().join("crates/capi/include")).arg(root().join(source));
    cc.arg("-o").arg(&program).args(linked);
    match cc.output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(program)
        }
        Err(error) => {
            skipped(format!("cc: {error} (apt-get install gcc)"));
            None
        }
    }
}

/// Installs the library and returns the compiler options for these packages; `None` if pkg-config or a package is
/// missing.
pub fn installed(prefix: &Path, packages: &[&str]) -> Option<Vec<String>> {
    let make = Command::new("make")
        .args(["--no-print-directory", "install-library-of"])
        .arg(format!("LIBRARIES={}", libraries().display()))
        .arg(format!("PREFIX={}", prefix.display()))
        .current_dir(root())
        .output()
        .unwrap();
    assert!(make.status.success(), "{}", String::from_utf8_lossy(&make.stderr));
    let library = prefix.join("lib");
    let pkg_config = Command::new("pkg-config")
        .args(["--cflags", "--libs"])
        .args(packages)
        .env("PKG_CONFIG_PATH", library.join("pkgconfig"))
        .output();
    match pkg_config {
        Ok(pkg_config) if pkg_config.status.success() => {
            let options = String::from_utf8(pkg_config.stdout).unwrap();
            let path = format!("-Wl,-rpath,{}", library.display());
            Some(options.split_whitespace().map(str::to_owned).chain([path]).collect())
        }
        Ok(pkg_config) if packages.len() == 1 => {
            panic!("{}", String::from_utf8_lossy(&pkg_config.stderr))
        }
        Ok(_) => {
            skipped(format!("no {} (apt-get install libcurl4-openssl-dev)", packages[0]));
            None
        }
        Err(error) => {
            skipped(format!("pkg-config: {error} (apt-get install pkg-config)"));
            None
        }
    }
}
