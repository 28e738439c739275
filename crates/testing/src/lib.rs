//! Test helpers shared by several crates. Skipped tests are reported where developers see them.
//!
//! The test harness hides the output of a passing test. `make test` therefore names a file in
//! `SWEETSPOT_SKIPPED`, and prints its lines at the end.
//!
//! ```
//! if std::env::var_os("PATH").is_none() {
//!     sweetspot_testing::skipped("there is no PATH");
//! }
//! ```

pub mod browser;
pub mod capture;
pub mod promtool;
pub mod seccomp;
pub mod ssh;
pub mod terminal;

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::panic::Location;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// The names of all members of a JSON value, at any depth; a name that occurs twice is there twice.
pub fn member_names(value: &Value) -> Vec<String> {
    match value {
        Value::Object(members) => {
            let inner = |(name, value): (&String, &Value)| {
                [vec![name.clone()], member_names(value)].concat()
            };
            members.iter().flat_map(inner).collect()
        }
        Value::Array(entries) => entries.iter().flat_map(member_names).collect(),
        _ => Vec::new(),
    }
}

/// Panics unless two trees have the same names, contents and links.
#[track_caller]
pub fn assert_same_tree(one: &Path, other: &Path) {
    let mut diff = Command::new("diff");
    let diff = diff.args(["--recursive", "--no-dereference"]).args([one, other]).output();
    match diff {
        Ok(diff) => assert!(diff.status.success(), "{}", String::from_utf8_lossy(&diff.stdout)),
        Err(error) => panic!("diff: {error}"),
    }
}

/// An sh(1) script that transfers `file` from a `send` to a `serve`, both run by the program `$0`, into the directory `in`.
pub const ONE_TRANSFER: &str = "\
\"$0\" serve --quiet --dir in --listen 127.0.0.1:0 --once >ticket &
until [ -s ticket ]; do sleep 0.05; done
\"$0\" send --quiet file --ticket-file ticket || exit
wait
cmp file in/file";

/// Reports why the calling test, or a part of it, is skipped: on standard error, and as a line of the file named by
/// `SWEETSPOT_SKIPPED`. A reason ends with what would enable the test, in parentheses.
#[track_caller]
pub fn skipped(reason: impl Display) {
    let reason = reason.to_string();
    let line = format!("{}: {}\n", Location::caller().file(), reason.trim().replace('\n', " "));
    eprint!("skipped: {line}");
    let Some(path) = std::env::var_os("SWEETSPOT_SKIPPED") else { return };
    let file = OpenOptions::new().create(true).append(true).open(path);
    // One write per line: tests of several processes share the file.
    if let Err(error) = file.and_then(|mut file| file.write_all(line.as_bytes())) {
        eprintln!("cannot note a skipped test: {error}");
    }
}

/// Whether signal `number` is ignored here, and so in every program started from here; reports that as a skipped test. A
/// shell ignores SIGINT (2) for background commands (`&`), nohup(1) ignores SIGHUP (1).
///
/// # Panics
/// If `/proc` is not mounted.
pub fn is_ignored(number: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("a mask");
    let mask = u64::from_str_radix(mask.trim(), 16).expect("a hexadecimal mask");
    let ignored = mask & (1 << (number - 1)) != 0;
    if ignored {
        skipped(format!(
            "signal {number}: ignored since the start of this test, as behind & or under nohup"
        ));
    }
    ignored
}

/// Whether the process has a handler for the signal `number`, waits for it or blocks it (`proc_pid_status(5)`), so that the
/// signal does not simply end it.
pub fn handles_signal(pid: u32, number: i32) -> bool {
    let read = |file| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    // The mask does not include signals that sigtimedwait(2) waits for.
    if read("wchan").starts_with("do_sigtimedwait") {
        return true;
    }
    let status = read("status");
    let has = |mask: &str, number: i32| {
        let mask = status.lines().find_map(|line| line.strip_prefix(mask));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        mask.is_some_and(|mask| mask & (1 << (number - 1)) != 0)
    };
    // While glibc starts a thread, it blocks every signal, including SIGUSR1 (10), which no program here blocks itself.
    has("SigCgt:", number) || has("SigBlk:", number) && !has("SigBlk:", 10)
}
