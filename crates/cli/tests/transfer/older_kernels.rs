//! Transfers work without features that older kernels and containers lack.

use std::process::Command;

use sweetspot_testing::ONE_TRANSFER;
use sweetspot_testing::seccomp::{FORBIDDEN_IN_CONTAINERS, REPLACEABLE, forbidding};

/// On Linux 5.10 and 6.1, files below /proc/sys/net/core exist only in the first network namespace.
const WITHOUT_CORE_LIMITS: &str = "\
mount --make-rprivate / && mount -t tmpfs tmpfs /proc/sys/net/core || exit 77
for sizing in sobas kernel fixed:1MB max; do
    \"$0\" serve --quiet --dir in --listen 127.0.0.1:0 --once > ticket &
    until [ -s ticket ]; do sleep 0.05; done
    \"$0\" send --quiet file --ticket-file ticket --name $sizing --sizing $sizing || exit
    wait
    cmp file in/$sizing || exit
    rm ticket
done";

#[test]
fn transfers_work_without_net_core_limits() {
    let scratch = tempfile::tempdir().unwrap();
    std::fs::write(scratch.path().join("file"), vec![7; 20_000_000]).unwrap();
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", WITHOUT_CORE_LIMITS, env!("CARGO_BIN_EXE_sweetspot")])
        .current_dir(scratch.path())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) || stderr.contains("unshare failed") {
        sweetspot_testing::skipped("no mount namespace can be had here (run as root)");
        return;
    }
    assert!(output.status.success(), "{stderr}");
}

/// EPERM and ENOSYS: the filter of a container returns one or the other.
#[test]
fn transfers_work_under_a_container_seccomp_filter() {
    for error in [1, 38] {
        let Some(mut shell) = forbidding(&FORBIDDEN_IN_CONTAINERS, error, "/bin/sh") else {
            return;
        };
        let scratch = tempfile::tempdir().unwrap();
        std::fs::write(scratch.path().join("file"), vec![7; 2_000_000]).unwrap();
        shell.args(["-c", ONE_TRANSFER, env!("CARGO_BIN_EXE_sweetspot")]);
        let output = shell.current_dir(scratch.path()).output().unwrap();
        assert!(output.status.success(), "{error}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

const A_TREE_TWICE: &str = "\
for attempt in 1 2; do
    \"$0\" serve --quiet --force --dir in --listen 127.0.0.1:0 --once > ticket &
    until [ -s ticket ]; do sleep 0.05; done
    \"$0\" send --quiet tree --ticket-file ticket || exit
    wait
    diff -r tree in/tree || exit
    rm ticket
    echo more >> tree/a/b/file
done";

/// The second transfer updates the files of the first one.
#[test]
fn trees_arrive_without_the_system_calls_that_have_a_fallback() {
    for error in [1, 38] {
        let Some(mut shell) = forbidding(&REPLACEABLE, error, "/bin/sh") else { return };
        let scratch = tempfile::tempdir().unwrap();
        let below = scratch.path().join("tree/a/b");
        std::fs::create_dir_all(&below).unwrap();
        std::fs::write(below.join("file"), vec![7; 2_000_000]).unwrap();
        let holes = std::fs::File::create(below.join("holes")).unwrap();
        holes.set_len(3_000_000).unwrap();
        shell.args(["-c", A_TREE_TWICE, env!("CARGO_BIN_EXE_sweetspot")]);
        let output = shell.current_dir(scratch.path()).output().unwrap();
        let words = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{error}: {}", String::from_utf8_lossy(&words));
    }
}
