//! Verbs under the seccomp filter of a container: they work without the forbidden system calls, or name them.

use sweetspot_testing::seccomp::{FORBIDDEN_IN_CONTAINERS, REPLACEABLE, forbidding};

/// The error of a filter: EPERM (Docker, systemd) or ENOSYS.
const ERRORS: [i32; 2] = [1, 38];

/// Runs `sweetspot ARGUMENTS` with a filter that makes forbidden calls fail with `error`. Returns the exit code and output;
/// `None` if filters are not available.
fn sweetspot(error: i32, arguments: &[&str]) -> Option<(Option<i32>, String)> {
    let program = env!("CARGO_BIN_EXE_sweetspot");
    let output = forbidding(&FORBIDDEN_IN_CONTAINERS, error, program)?.args(arguments).output();
    let output = output.unwrap();
    let words = [output.stdout, output.stderr].concat();
    Some((output.status.code(), String::from_utf8_lossy(&words).trim().to_owned()))
}

#[test]
fn tune_run_works_silently_without_the_forbidden_system_calls() {
    for error in ERRORS {
        let run = sweetspot(error, &["tune", "run", "--", "echo", "it runs"]);
        let Some(ended) = run else { return };
        assert_eq!(ended, (Some(0), "it runs".to_owned()), "{error}");
    }
}

#[test]
fn inspection_verbs_work_without_the_forbidden_system_calls() {
    for verb in [&["top", "--once"][..], &["advise", "host"], &["tune", "undo"]] {
        for error in ERRORS {
            let Some((code, words)) = sweetspot(error, verb) else { return };
            assert_eq!(code, Some(0), "{verb:?}, {error}: {words}");
        }
    }
}

#[test]
fn tune_run_works_without_the_system_calls_that_have_a_fallback() {
    for error in ERRORS {
        let program = env!("CARGO_BIN_EXE_sweetspot");
        let Some(mut command) = forbidding(&REPLACEABLE, error, program) else { return };
        let output = command.args(["tune", "run", "--", "echo", "it runs"]).output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{error}: {words}");
        assert_eq!(output.stdout, b"it runs\n", "{error}: {words}");
    }
}

#[test]
fn a_verb_that_needs_a_forbidden_system_call_names_it() {
    let path = "rate=20Mbit/s rtt=40ms buffer=100kB";
    let pid = std::process::id().to_string();
    let cases = [
        (&["emulate", "--path", path, "--", "true"][..], "unshare"),
        (&["tune", "attach", &pid], "pidfd_getfd"),
        (&["tune", "doctor"], "use --via pidfd"),
    ];
    for (verb, named) in cases {
        for error in ERRORS {
            let Some((code, words)) = sweetspot(error, verb) else { return };
            assert_eq!(code, Some(1), "{verb:?}, {error}: {words}");
            assert!(words.contains(named), "{verb:?}, {error}: {words}");
        }
    }
}
