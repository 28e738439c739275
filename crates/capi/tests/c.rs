//! C programs against the library, linked statically and dynamically.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;

use sweetspot_testing::skipped;

/// The system's libraries below the static one (`cargo rustc -- --print native-static-libs`).
const SYSTEM_LIBRARIES: [&str; 6] = ["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The directory of the libraries that cargo built for this test.
fn libraries() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().to_owned()
}

/// Compiles a program with these options of the linker; `None` without a compiler.
fn compile(source: &str, to: &Path, linked: &[String]) -> Option<PathBuf> {
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

/// Installs the library, and returns the options of a compiler for these packages; `None` without pkg-config or without
/// one of them.
fn installed(prefix: &Path, packages: &[&str]) -> Option<Vec<String>> {
    let make = Command::new("make")
        .args(["--no-print-directory", "install-library-of"])
        .arg(format!("LIBRARIES={}", libraries().display()))
        .arg(format!("PREFIX={}", prefix.display()))
        .current_dir(root())
        .output()
        .unwrap();
    assert!(make.status.success(), "{}", String::from_utf8_lossy(&make.stderr));
    let library = prefix.join("lib");
    let asked = Command::new("pkg-config")
        .args(["--cflags", "--libs"])
        .args(packages)
        .env("PKG_CONFIG_PATH", library.join("pkgconfig"))
        .output();
    match asked {
        Ok(asked) if asked.status.success() => {
            let options = String::from_utf8(asked.stdout).unwrap();
            let path = format!("-Wl,-rpath,{}", library.display());
            Some(options.split_whitespace().map(str::to_owned).chain([path]).collect())
        }
        Ok(asked) if packages.len() == 1 => {
            panic!("{}", String::from_utf8_lossy(&asked.stderr))
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

fn run(program: &Path) {
    let output = Command::new(program).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?} {said}", output.status);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "all laws hold\n");
}

#[test]
fn the_laws_hold_for_a_program_that_links_the_static_library() {
    let directory = tempfile::tempdir().unwrap();
    let library = libraries().join("libsweetspot.a").display().to_string();
    let linked: Vec<String> =
        std::iter::once(library).chain(SYSTEM_LIBRARIES.map(str::to_owned)).collect();
    if let Some(program) = compile("crates/capi/tests/c/laws.c", directory.path(), &linked) {
        run(&program);
    }
}

#[test]
fn the_laws_hold_for_a_program_that_links_the_installed_shared_library() {
    let prefix = tempfile::tempdir().unwrap();
    let Some(linked) = installed(prefix.path(), &["sweetspot"]) else { return };
    if let Some(program) = compile("crates/capi/tests/c/laws.c", prefix.path(), &linked) {
        run(&program);
    }
}

/// A server of one file over HTTP, for one request.
fn serve(file: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut request = BufReader::new(client.try_clone().unwrap()).lines();
        while request.next().is_some_and(|line| !line.unwrap().is_empty()) {}
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", file.len());
        client.write_all(head.as_bytes()).unwrap();
        client.write_all(&file).unwrap();
    });
    address
}

#[test]
fn a_download_by_libcurl_is_sized_and_complete() {
    let prefix = tempfile::tempdir().unwrap();
    let Some(linked) = installed(prefix.path(), &["libcurl", "sweetspot"]) else { return };
    let Some(program) = compile("examples/libcurl.c", prefix.path(), &linked) else { return };
    let file: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    let url = format!("http://{}/file", serve(file.clone()));
    let output = Command::new(program).arg(url).env_remove("http_proxy").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(output.stdout == file);
    // The socket was attached: otherwise it would say why the kernel sizes it.
    assert!(said.contains(", limited by ") && !said.contains("sized by the kernel"), "{said}");
}
