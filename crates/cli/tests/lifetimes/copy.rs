//! Tests the far end of `copy`, started through a program in place of ssh.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use sweetspot_linux::signals::Signal;

use super::started::{Kept, SWEETSPOT, marked, wait_for};

/// Runs the command on this host. As with a real ssh, no signals from the near end reach it; its standard input
/// ends instead.
const SSH: &str = "[ \"$1\" = -G ] && exit; shift 2; cat | sh -c \"$1\" | cat";

const ROUTES: [&str; 3] = ["direct", "reverse", "ssh"];

/// Copies standard input to a file `name` in `scratch`, which represents the other host.
fn copy(scratch: &Path, route: &str, name: &str, mark: &str) -> Kept {
    let ssh = scratch.join("ssh");
    fs::write(&ssh, SSH).unwrap();
    let mut command = Command::new(SWEETSPOT);
    command.args(["copy", "-", &format!("host:{}", scratch.join(name).display()), "--quiet"]);
    command.args(["--via", route, "--ssh", &format!("sh {}", ssh.display())]);
    command.args(["--remote-program", SWEETSPOT]).env(super::started::MARK, mark);
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    Kept(command.spawn().unwrap())
}

#[test]
fn a_copy_arrives_whole_over_every_route() {
    for route in ROUTES {
        let scratch = tempfile::tempdir().unwrap();
        let mut near = copy(scratch.path(), route, "there", route);
        near.0.stdin.take().unwrap().write_all(&[7; 3_000_000]).unwrap();
        assert!(near.0.wait().unwrap().success(), "{route}");
        assert_eq!(fs::read(scratch.path().join("there")).unwrap(), [7; 3_000_000], "{route}");
    }
}

#[test]
fn the_far_end_exits_with_the_near_end() {
    let mut signals = vec![Signal::TERMINATE, Signal::HANG_UP, Signal::KILL, Signal::INTERRUPT];
    signals.retain(|signal| !sweetspot_testing::is_ignored(signal.number()));
    for route in ROUTES {
        for signal in &signals {
            let scratch = tempfile::tempdir().unwrap();
            let mark = format!("{}-{route}-{}", std::process::id(), signal.number());
            let mut near = copy(scratch.path(), route, "there", &mark);
            // Standard input stays open, so the transfer runs until a signal ends it.
            let mut input = near.0.stdin.take().unwrap();
            input.write_all(&[7; 3_000_000]).unwrap();
            let begun = || {
                let files = fs::read_dir(scratch.path()).unwrap().flatten();
                let is_large =
                    |file: &fs::DirEntry| file.metadata().is_ok_and(|m| m.len() > 100_000);
                files.into_iter().any(|file| is_large(&file)).then_some(())
            };
            assert!(wait_for(begun).is_some(), "{route}: no transfer");
            signal.send(near.0.id());
            near.0.wait().unwrap();
            let ended = wait_for(|| marked(&mark).is_empty().then_some(()));
            let left = marked(&mark);
            left.iter().for_each(|pid| Signal::KILL.send(*pid));
            assert!(ended.is_some(), "{route} by {signal:?}: {left:?}");
            drop(input);
        }
    }
}
