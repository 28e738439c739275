//! Invariants outside the namespaces, after the process inside has ended.

use std::fs;
use std::process::Command;

use sweetspot_emulator::{Emulation, isolate};

pub fn the_worker_s_exit_code_comes_back() {
    assert_eq!(isolate(|| 42).unwrap(), 42);
}

pub fn a_panic_inside_ends_inside() {
    let code = isolate(|| {
        std::panic::set_hook(Box::new(|_| {}));
        panic!("on purpose")
    });
    assert_eq!(code.unwrap(), 101);
}

pub fn processes_and_namespaces_are_gone() {
    let note = std::env::temp_dir().join(format!("sweetspot-leftovers-{}", std::process::id()));
    // An argument that no other process has in its command line.
    let nap = format!("1234.{}", std::process::id());
    let code = isolate(|| {
        let path = "rate=10Mbit/s rtt=10ms buffer=100kB".parse().unwrap();
        let emulation = Emulation::start(&path).unwrap();
        let mut namespaces = network_namespace("thread-self").unwrap();
        let mut children = Vec::new();
        for side in [emulation.near(), emulation.far()] {
            let inside = side.run(|| network_namespace("thread-self").unwrap()).unwrap();
            namespaces += &format!("\n{inside}");
            // A command that outlives its shell, as a daemon would.
            let line = format!("setsid sleep {nap} & sleep {nap}");
            children.push(side.spawn(Command::new("sh").args(["-c", &line])).unwrap());
        }
        fs::write(&note, namespaces).unwrap();
        assert_eq!(children.len(), 2);
        // The worker ends without stopping or waiting for anything.
        std::process::exit(7);
    });
    assert_eq!(code.unwrap(), 7);

    let namespaces = fs::read_to_string(&note).unwrap();
    fs::remove_file(&note).unwrap();
    let removed: Vec<_> = namespaces.lines().collect();
    assert_eq!(removed.len(), 3);
    for process in fs::read_dir("/proc").unwrap().flatten() {
        let name = process.file_name().into_string().unwrap();
        let words = fs::read(process.path().join("cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).into_owned();
        assert!(!words.contains(&nap), "{name} is left: {words}");
        let namespace = network_namespace(&name);
        assert!(!namespace.is_some_and(|n| removed.contains(&n.as_str())), "{name} is left inside");
    }
}

/// The network namespace of a process, like `net:[4026531833]`.
fn network_namespace(process: &str) -> Option<String> {
    let link = fs::read_link(format!("/proc/{process}/ns/net")).ok()?;
    Some(link.to_string_lossy().into_owned())
}
