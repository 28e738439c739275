//! Hosts that lack a requirement of `tune --via bpf`: sweetspot names it and uses pidfd.

use std::process::Command;

use sweetspot_kernel::probe;

use crate::inside::{possible, sweetspot};

/// Runs a command with each mechanism on a host that lacks a requirement: `prepare` removes it in a mount namespace. Only
/// `--via bpf` fails, and only `--verbose` gives the reason for pidfd.
fn without(prepare: &str, name: &str) {
    if !possible() {
        return;
    }
    let run = |options: &str| {
        let script =
            format!("{prepare} exec $WRAP $SWEETSPOT tune run {options} -- sh -c 'echo it runs'");
        let output = Command::new("unshare")
            .args(["--mount", "sh", "-c", &script])
            .env("SWEETSPOT", env!("CARGO_BIN_EXE_sweetspot"))
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, _, message) = run("--via bpf");
    assert_eq!((code, message.lines().count()), (Some(125), 1), "{message}");
    assert!(message.contains(&format!("cannot tune via bpf: {name}: ")), "{message}");
    for silent in ["", "--via auto"] {
        assert_eq!(run(silent), (Some(0), "it runs".to_owned(), String::new()), "{silent}");
    }
    let (code, ran, message) = run("--verbose");
    // The three lines: the reason for pidfd, the watched process, and that there was nothing to tune.
    assert_eq!((code, ran.as_str(), message.lines().count()), (Some(0), "it runs", 3), "{message}");
    assert!(message.contains(name) && message.contains("; using pidfd\n"), "{message}");
}

/// This holds for root and for other users.
#[test]
fn an_unavailable_default_mechanism_falls_back_silently() {
    let missing = probe::examine().into_iter().find(|finding| !finding.is_present);
    let run = |options: &[&str]| {
        sweetspot(&[&["tune", "run"], options, &["--", "echo", "it runs"]].concat())
    };
    for silent in [&[][..], &["--via", "auto"], &["--via", "pidfd"]] {
        assert_eq!(run(silent), (Some(0), "it runs".to_owned(), String::new()), "{silent:?}");
    }
    let (_, _, named) = run(&["--via", "pidfd", "--verbose"]);
    let expected =
        ["sweetspot: watching echo via pidfd", "sweetspot: no TCP connection of echo was seen"];
    assert_eq!(named.lines().collect::<Vec<_>>(), expected);
    // A dry run names it, too.
    let (_, _, rehearsed) = run(&["--via", "pidfd", "--dry-run"]);
    assert!(rehearsed.lines().any(|line| line == expected[0]), "{rehearsed}");
    let Some(missing) = missing else { return };
    let (code, ran, message) = run(&["-v"]);
    assert_eq!((code, ran.as_str()), (Some(0), "it runs"), "{message}");
    assert!(message.lines().count() == 3 && message.contains("; using pidfd\n"), "{message}");
    let (code, ran, message) = run(&["--via", "bpf"]);
    assert_eq!((code, ran.as_str(), message.lines().count()), (Some(125), "", 1), "{message}");
    let (_, doctor, _) = sweetspot(&["tune", "doctor"]);
    let line = |line: &str| line.starts_with("missing") && line.contains(missing.name);
    assert!(doctor.lines().any(line), "{doctor}");
}

#[test]
fn a_host_without_cgroup_v2_is_tuned_via_pidfd() {
    without("umount -l $(findmnt -nt cgroup2 -o TARGET | head -1);", "cgroup v2");
}

#[test]
fn a_kernel_without_btf_is_tuned_via_pidfd() {
    without("mount -t tmpfs none /sys/kernel/btf;", "BTF");
}

#[test]
fn a_locked_down_kernel_is_tuned_via_pidfd() {
    let lockdown = "mount -t tmpfs none /sys/kernel/security; \
                    echo 'none integrity [confidentiality]' > /sys/kernel/security/lockdown;";
    without(lockdown, "lockdown");
}

#[test]
fn without_the_capabilities_a_command_is_tuned_via_pidfd() {
    without("WRAP='setpriv --inh-caps=-all --bounding-set=-all';", "rights");
}

#[test]
fn doctor_lists_every_requirement_with_its_status() {
    let complete = probe::examine().iter().all(|finding| finding.is_present);
    let (code, words, _) = sweetspot(&["tune", "doctor"]);
    assert_eq!(code, Some(i32::from(!complete)));
    assert!(words.lines().any(|line| line.contains("cgroup v2")), "{words}");
    // Every check has a line, even if a missing requirement prevents it.
    for name in probe::LAST_CHECKS {
        assert!(words.lines().any(|line| line[8..].starts_with(name)), "{name}: {words}");
    }
    let (_, quiet, _) = sweetspot(&["tune", "doctor", "-q"]);
    assert_eq!(quiet, words, "--quiet keeps the result");
    assert!(words.lines().all(|line| line.chars().count() <= 80), "{words}");
    let (_, json, _) = sweetspot(&["tune", "doctor", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["bpf"], complete);
    let findings = json["findings"].as_array().unwrap();
    assert!(findings.len() >= 6);
    assert!(findings.iter().all(|f| f["name"].is_string()));
    // A check prevented by a missing requirement is neither met nor missing.
    for finding in findings {
        let is_last = probe::LAST_CHECKS.iter().any(|name| finding["name"] == *name);
        assert!(finding["met"].is_boolean() || is_last && finding["met"].is_null());
    }
    assert!(probe::LAST_CHECKS.iter().all(|name| findings.iter().any(|f| f["name"] == *name)));
}

#[test]
fn invalid_arguments_are_rejected_in_one_line() {
    let (code, _, message) = sweetspot(&["tune", "run", "--via", "pigeon", "--", "true"]);
    assert_eq!(code, Some(2));
    assert!(
        message.contains("expected bpf (")
            && message.contains("pidfd (")
            && message.contains("auto (")
    );
    let scratch = tempfile::tempdir().unwrap();
    let policy = scratch.path().join("policy.toml");
    // Missing, a directory, and invalid: the command line names the wrong thing.
    std::fs::write(scratch.path().join("invalid.toml"), "gaol = 1").unwrap();
    for wrong in ["nosuch.toml", ".", "invalid.toml"] {
        let wrong = scratch.path().join(wrong).display().to_string();
        let (code, _, message) = sweetspot(&["tune", "daemon", "--policy", &wrong]);
        assert_eq!((code, message.lines().count()), (Some(2), 1), "{wrong}: {message}");
    }
    for wrong in [&["run", "-q", "-v", "--", "true"][..], &["attach", "0"]] {
        assert_eq!(sweetspot(&[&["tune"], wrong].concat()).0, Some(2), "{wrong:?}");
    }
    let failing = ["tune", "run", "--events", "/no/such/directory/events", "--", "true"];
    assert_eq!(sweetspot(&failing).0, Some(125));
    if !possible() {
        return;
    }
    std::fs::write(&policy, "[[rule]]\ngoal = \"throughput\"\n").unwrap();
    let daemon = ["tune", "daemon", "--via", "bpf", "--policy", policy.to_str().unwrap()];
    let (code, _, message) = sweetspot(&[&daemon[..], &["--cgroup", "no/such/cgroup"]].concat());
    assert_eq!((code, message.lines().count()), (Some(1), 1), "{message}");
    let named =
        message.contains("no cgroup /") && message.contains("/no/such/cgroup; name one like");
    assert!(named, "{message}");
}
