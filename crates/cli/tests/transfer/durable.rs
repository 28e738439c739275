//! The order in which arriving data is written, synced, renamed and confirmed. A power failure at any point leaves no file
//! name without its content, and loses nothing that was confirmed.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::running::{SWEETSPOT, Serve, file, run};

const CALLS: &str = "trace=fsync,fdatasync,syncfs,rename,renameat,renameat2,linkat,sendto";

/// The receiver's system calls in order, while files with these names and lengths arrive.
fn receive_traced(directory: &Path, trace: &Path, files: &[(&str, usize)]) -> Vec<String> {
    let scratch = tempfile::tempdir().unwrap();
    let mut command = Command::new("strace");
    command.args(["-f", "-y", "-s", "0", "-e", CALLS, "-o"]).arg(trace).arg("--");
    command
        .arg(SWEETSPOT)
        .args(["serve", "--once", "--listen", "127.0.0.1:0", "--dir"])
        .arg(directory);
    let serve = Serve::spawn(scratch, directory, command);
    let source = tempfile::tempdir().unwrap();
    for (name, length) in files {
        fs::write(source.path().join(name), file(*length).1).unwrap();
    }
    let mut send = Command::new(SWEETSPOT);
    send.arg("send").arg(source.path().join("")).arg(&serve.ticket).arg("--quiet");
    let sent = run(send);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let received = serve.wait();
    assert_eq!(received.code, Some(0), "{received:?}");
    // A call interrupted by another thread appears twice, at its beginning and its end; it takes effect at the end.
    let lines = fs::read_to_string(trace).unwrap();
    lines.lines().filter(|line| !line.contains("resumed>")).map(str::to_owned).collect()
}

#[test]
fn content_is_synced_before_its_name_and_both_before_confirmation() {
    if Command::new("strace").arg("-V").output().is_err() {
        return sweetspot_testing::skipped("there is no strace (apt-get install strace)");
    }
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("incoming");
    fs::create_dir(&directory).unwrap();
    let files = [("large", 3_000_000), ("small", 5_000)];
    let calls = receive_traced(&directory, &scratch.path().join("trace"), &files);
    let place = |what: &str, is: &dyn Fn(&str) -> bool| {
        let found = calls.iter().position(|call| is(call));
        found.unwrap_or_else(|| panic!("{what} is not among {calls:#?}"))
    };
    let last = |what: &str, is: &dyn Fn(&str) -> bool| {
        let found = calls.iter().rposition(|call| is(call));
        found.unwrap_or_else(|| panic!("{what} is not among {calls:#?}"))
    };
    let is_sync = |call: &str| call.contains(" fsync(") || call.contains(" fdatasync(");
    let content = place("the content's fsync", &|call| is_sync(call) && call.contains(".part>"));
    let name = place("the name", &|call| call.contains(" rename") && call.contains("\"large\""));
    let parent = last("the directory's fsync", &|call| is_sync(call) && call.contains("incoming>"));
    assert!(content < name && name < parent, "{calls:#?}");
    let small = place("the small file's name", &|call| {
        (call.contains(" linkat(") || call.contains(" rename")) && call.contains("\"small\"")
    });
    let all = last("syncfs", &|call| call.contains(" syncfs("));
    assert!(small < all, "{calls:#?}");
    let confirmed = last("the summary", &|call| call.contains(" sendto("));
    assert!(parent < confirmed && all < confirmed, "{calls:#?}");
}

/// Syncing the whole file system would wait for the writes of other programs.
#[test]
fn a_single_small_file_is_fsynced_before_confirmation() {
    if Command::new("strace").arg("-V").output().is_err() {
        return sweetspot_testing::skipped("there is no strace (apt-get install strace)");
    }
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("incoming");
    fs::create_dir(&directory).unwrap();
    let calls = receive_traced(&directory, &scratch.path().join("trace"), &[("small", 5_000)]);
    let last = |words: &[&str]| {
        let found = calls.iter().rposition(|call| words.iter().all(|word| call.contains(word)));
        found.unwrap_or_else(|| panic!("{words:?} is not among {calls:#?}"))
    };
    let (name, content) = (last(&[" linkat(", "\"small\""]), last(&[" fsync(", "/small>"]));
    let (parent, confirmed) = (last(&[" fsync(", "incoming>"]), last(&[" sendto("]));
    assert!(name < content && content < parent && parent < confirmed, "{calls:#?}");
    assert!(!calls.iter().any(|call| call.contains(" syncfs(")), "{calls:#?}");
}

#[test]
fn a_file_that_cannot_be_synced_is_never_confirmed() {
    if Command::new("strace").arg("-V").output().is_err() {
        return sweetspot_testing::skipped("there is no strace (apt-get install strace)");
    }
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("incoming");
    fs::create_dir(&directory).unwrap();
    let source = tempfile::tempdir().unwrap();
    fs::write(source.path().join("small"), "content").unwrap();
    // Nothing reaches the disk. The first transfer writes the file. The second one finds it, and must not confirm it either.
    for transfer in ["writes", "finds"] {
        let mut command = Command::new("strace");
        command.args(["-f", "-o", "/dev/null", "-e", "trace=fsync,syncfs"]);
        command.args(["-e", "inject=fsync,syncfs:error=EIO", "--", SWEETSPOT, "serve", "--once"]);
        command.args(["--listen", "127.0.0.1:0", "--dir"]).arg(&directory);
        let serve = Serve::spawn(tempfile::tempdir().unwrap(), &directory, command);
        let mut send = Command::new(SWEETSPOT);
        send.arg("send").arg(source.path().join("")).arg(&serve.ticket);
        send.args(["--quiet", "--retry-for", "1ms"]);
        let sent = run(send);
        assert_eq!(sent.code, Some(1), "a transfer that {transfer} the file: {sent:?}");
        assert!(sent.stderr.contains("writing to disk"), "{sent:?}");
        // Another try would not help.
        assert_eq!(serve.wait().code, Some(1));
    }
}
