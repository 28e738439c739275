//! Runs each verb as another user, in the user namespace of an unprivileged container, and without a way to gain
//! privileges (no_new_privs). Each verb does its work, or names the missing privilege.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

use sweetspot_testing::ONE_TRANSFER;

/// Ways to start a program with fewer privileges.
const WRAPPERS: [(&str, &[&str]); 3] = [
    (
        "another user",
        &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"],
    ),
    (
        "a user namespace",
        &[
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--inh-caps=-all",
            "unshare",
            "--map-root-user",
        ],
    ),
    ("no_new_privs", &["setpriv", "--no-new-privs"]),
];

const COPY: &str = "\
printf '#!/bin/sh\\nwhile [ $# -gt 1 ]; do shift; done\\nexec sh -c \"$1\"\\n' >ssh && chmod 755 ssh
\"$0\" copy --quiet --ssh ./ssh --remote-program \"$0\" file far:$PWD/got && cmp file got";

/// A command for each verb, and words of the error for a missing privilege; "" if it must succeed.
const VERBS: [(&str, &str); 17] = [
    (ONE_TRANSFER, ""),
    (COPY, ""),
    ("\"$0\" serve key --identity key.pem", ""),
    ("\"$0\" top --once", ""),
    ("\"$0\" diagnose 127.0.0.1:1 --for 1s", "no TCP connection here begins or ends at"),
    ("\"$0\" diagnose --follow lo --for 1s", "with CAP_NET_RAW"),
    ("\"$0\" measure 127.0.0.1:1", "name a TCP port that is open there"),
    ("\"$0\" tune run -- true", ""),
    ("\"$0\" tune run --via bpf -- true", "cannot tune via bpf|tune doctor names what is missing"),
    ("\"$0\" tune undo", ""),
    // It fails if a requirement is missing, and names it.
    ("\"$0\" tune doctor | grep -E 'tune runs via pidfd|tune run and tune daemon use bpf'", ""),
    ("\"$0\" advise host", ""),
    ("\"$0\" run path.toml && \"$0\" run path.toml --out run.json && \"$0\" report run.json", ""),
    ("\"$0\" sweep path.toml --over transfer.sizing=kernel,sobas", ""),
    ("\"$0\" emulate --path 'rate=20Mbit/s rtt=10ms buffer=50kB' -- true", "network namespace"),
    ("\"$0\" generate man man", ""),
    (
        "\"$0\" ui --json >address & until [ -s address ]; do sleep 0.05; done; kill $! && grep http address",
        "",
    ),
];

const SCENARIO: &str = "duration = \"1s\"\n[path]\nrate = \"10Mbit/s\"\nrtt = \"40ms\"\nbuffer = \"50kB\"\n[[transfer]]\n";

#[test]
fn each_verb_works_with_fewer_privileges_or_names_the_missing_one() {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return sweetspot_testing::skipped("only root can give rights up (run as root)");
    }
    for (name, command) in WRAPPERS {
        // These privileges cannot be dropped here, or there are no user namespaces.
        if !Command::new(command[0])
            .args(&command[1..])
            .arg("true")
            .output()
            .is_ok_and(|o| o.status.success())
        {
            sweetspot_testing::skipped(format!("no {name} can be had here"));
            continue;
        }
        // Another user may be unable to read root's build directory.
        let scratch = tempfile::tempdir().unwrap();
        let open = fs::Permissions::from_mode(0o777);
        fs::set_permissions(scratch.path(), open).unwrap();
        let program = scratch.path().join("sweetspot");
        let by_cp = Command::new("cp").arg(env!("CARGO_BIN_EXE_sweetspot")).arg(&program).status();
        assert!(by_cp.unwrap().success());
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(scratch.path().join("file"), vec![7; 100_000]).unwrap();
        fs::write(scratch.path().join("path.toml"), SCENARIO).unwrap();
        for (script, missing) in VERBS {
            let output = Command::new(command[0])
                .args(&command[1..])
                .args(["timeout", "60", "sh", "-c", script])
                .arg(&program)
                .env("HOME", scratch.path())
                .current_dir(scratch.path())
                .output()
                .unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            let named =
                !missing.is_empty() && missing.split('|').any(|words| stderr.contains(words));
            assert!(output.status.success() || named, "{name}: {script}: {stderr}");
        }
    }
}
