//! C programs against the library, linked statically and dynamically.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;

use sweetspot_testing::seccomp::{FORBIDDEN_IN_CONTAINERS, forbidding};
use sweetspot_testing::skipped;

mod common;
use common::{SYSTEM_LIBRARIES, compile, installed, libraries};

fn run(program: &Path) {
    hold(&mut Command::new(program));
}

fn hold(laws: &mut Command) {
    let output = laws.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?} {said}", output.status);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "all laws hold\n");
}

#[test]
fn the_laws_hold_with_the_static_library() {
    let directory = tempfile::tempdir().unwrap();
    if let Some(program) = laws(directory.path()) {
        run(&program);
    }
}

#[test]
fn the_laws_hold_with_the_installed_shared_library() {
    let prefix = tempfile::tempdir().unwrap();
    let Some(linked) = installed(prefix.path(), &["sweetspot"]) else { return };
    if let Some(program) = compile("crates/capi/tests/c/laws.c", prefix.path(), &linked) {
        run(&program);
    }
}

/// The laws' program, linked with the static library.
fn laws(directory: &Path) -> Option<PathBuf> {
    let library = libraries().join("libsweetspot.a").display().to_string();
    let linked: Vec<String> =
        std::iter::once(library).chain(SYSTEM_LIBRARIES.map(str::to_owned)).collect();
    compile("crates/capi/tests/c/laws.c", directory, &linked)
}

/// Under Docker's default seccomp profile.
#[test]
fn the_laws_hold_in_a_container() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = laws(directory.path()) else { return };
    let program = program.to_str().unwrap();
    if let Some(mut laws) = forbidding(&FORBIDDEN_IN_CONTAINERS, libc::EPERM, program) {
        hold(&mut laws);
    }
}

/// Far fewer cycles than in the manual run (docs/library.md): valgrind makes each call fifty times
/// slower.
#[test]
fn attaching_and_detaching_leaks_no_memory() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return skipped("there is no valgrind (apt-get install valgrind)");
    }
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = laws(directory.path()) else { return };
    let valgrind = |options: &[&str], arguments: &[&str]| {
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--quiet", "--error-exitcode=9"]).args(options).arg(&program);
        hold(valgrind.args(arguments));
    };
    valgrind(&["--leak-check=no"], &["100"]);
    // Cycles only: a child of fork(2) exits with the memory of its parent's threads.
    valgrind(&["--leak-check=full", "--errors-for-leak-kinds=definite"], &["1000", "only"]);
}

/// Serves one file over HTTP, for one request.
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
    // The socket was attached; otherwise the output would say why the kernel sizes it.
    assert!(said.contains(", limited by ") && !said.contains("sized by the kernel"), "{said}");
}
