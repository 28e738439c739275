//! A running verb, its surroundings, and the processes and files that it leaves.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use sweetspot_linux::clock;
use sweetspot_linux::processes::{self, Process};
use sweetspot_linux::signals::Signal;
use sweetspot_testing::handles_signal;
use sweetspot_units::Duration;

use crate::verbs::Verb;

pub const SWEETSPOT: &str = env!("CARGO_BIN_EXE_sweetspot");

/// The environment variable that marks a verb's descendants, wherever they move.
pub const MARK: &str = "SWEETSPOT_LIFETIME";

/// Runs a command on a new terminal, prints its process ID, and closes the terminal when standard input ends.
const TERMINAL: &str = "\
import os, pty, select, sys
pid, screen = pty.fork()
if pid == 0: os.execvp(sys.argv[1], sys.argv[1:])
print(pid, flush=True)
while True:
    ready = select.select([screen, 0], [], [])[0]
    if 0 in ready: break
    try: os.read(screen, 65536)
    except OSError: break
os.close(screen)
os.waitpid(pid, 0)";

/// Polls until `look` returns a value.
pub fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let patience = clock::now() + Duration::from_secs(20);
    while clock::now() < patience {
        if let Some(found) = look() {
            return Some(found);
        }
        clock::sleep_until(clock::now() + Duration::from_millis(20));
    }
    None
}

/// A child process that ends with the test.
pub struct Kept(pub Child);

impl Drop for Kept {
    fn drop(&mut self) {
        // A process that has already ended needs no kill.
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// The surroundings that the verbs need.
pub struct Surroundings {
    scratch: tempfile::TempDir,
    ticket: String,
    process: Kept,
    _silent: TcpListener,
}

impl Surroundings {
    pub fn new() -> Option<Surroundings> {
        let mut probe = Command::new("unshare");
        probe.args(["--net", "--mount", "--pid", "--fork", "true"]).stderr(Stdio::null());
        if !probe.status().is_ok_and(|status| status.success()) {
            sweetspot_testing::skipped("no network namespace can be had here (run as root)");
            return None;
        }
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path();
        fs::write(path.join("file"), [7; 1000]).unwrap();
        fs::write(path.join("clients"), "# nobody\n").unwrap();
        fs::write(path.join("policy.toml"), "[[rule]]\nports = [1]\ngoal = \"leave\"\n").unwrap();
        let (ticket, silent) = silent_peer(path);
        let process = Kept(Command::new("sleep").arg("1000").spawn().unwrap());
        Some(Surroundings { scratch, ticket, process, _silent: silent })
    }

    fn filled(&self, verb: &Verb) -> Vec<String> {
        let scenarios = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
        let fill = |argument: &&str| {
            argument
                .replace("{scratch}", &self.scratch.path().display().to_string())
                .replace("{ticket}", &self.ticket)
                .replace("{process}", &self.process.0.id().to_string())
                .replace("{scenarios}", scenarios)
        };
        verb.arguments.iter().map(fill).collect()
    }
}

/// A ticket, and a listener that accepts its connections but never sends.
fn silent_peer(scratch: &Path) -> (String, TcpListener) {
    loop {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut server = Command::new(SWEETSPOT);
        server.args(["serve", "--quiet", "--listen", &format!("127.0.0.1:{port}"), "--dir"]);
        let mut server = Kept(server.arg(scratch).stdout(Stdio::piped()).spawn().unwrap());
        let mut ticket = String::new();
        BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut ticket).unwrap();
        drop(server);
        // Another process may have taken the port in the meantime.
        if let Ok(silent) = TcpListener::bind(("127.0.0.1", port)) {
            return (ticket.trim().to_owned(), silent);
        }
    }
}

/// The path of the program that runs `verb`.
pub fn program(verb: &Verb) -> String {
    if !verb.is_research {
        return SWEETSPOT.to_owned();
    }
    Path::new(SWEETSPOT).with_file_name("sweetspot-research").display().to_string()
}

/// A running verb.
pub struct Started {
    pub pid: u32,
    /// The process that the test started: the verb, or the terminal around it.
    child: Kept,
    input: Option<ChildStdin>,
    output: Option<ChildStdout>,
    mark: String,
    own: PathBuf,
}

impl Started {
    pub fn on_pipes(verb: &Verb, around: &Surroundings) -> Started {
        Started::run(verb, around, &[])
    }

    pub fn without_streams(verb: &Verb, around: &Surroundings) -> Started {
        Started::run(verb, around, &["sh", "-c", "exec \"$0\" \"$@\" <&- >&- 2>&-"])
    }

    pub fn on_terminal(verb: &Verb, around: &Surroundings) -> Started {
        let mut started = Started::run(verb, around, &["python3", "-c", TERMINAL]);
        let mut line = String::new();
        BufReader::new(started.output.take().unwrap()).read_line(&mut line).unwrap();
        started.pid = line.trim().parse().unwrap();
        started
    }

    /// Starts `verb` with `words`, in its own directory, which also receives its temporary files.
    fn run(verb: &Verb, around: &Surroundings, words: &[&str]) -> Started {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}-{number}-", std::process::id());
        let own = around.scratch.path().join(format!("own-{number}"));
        fs::create_dir(&own).unwrap();
        let program = program(verb);
        let all: Vec<&str> = words.iter().copied().chain([program.as_str()]).collect();
        let mut command = Command::new(all[0]);
        command.args(&all[1..]).args(around.filled(verb));
        command.env(MARK, &mark).env("TMPDIR", &own).env("XDG_STATE_HOME", &own);
        command.env("RUNTIME_DIRECTORY", around.scratch.path()).env("TERM", "xterm");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take());
        Started { pid: child.id(), child: Kept(child), input, output, mark, own }
    }

    /// Waits until the verb is at work: a signal before that ends any process.
    pub fn wait_until_ready(&self, verb: &Verb) -> Result<(), String> {
        let is_ready = || {
            let held = !verb.holds_signals || handles_signal(self.pid, Signal::TERMINATE.number());
            let started = verb.starts.is_none_or(|program| {
                self.marked().into_iter().any(|pid| name(pid).is_some_and(|name| name == program))
            });
            (has_lifeline(self.pid) && held && started).then_some(())
        };
        let mut ended = false;
        let ready = wait_for(|| {
            ended = Process::read(self.pid).is_err();
            if ended { Some(()) } else { is_ready() }
        });
        match (ready, ended) {
            (Some(()), false) => Ok(()),
            (_, true) => Err("it ended by itself".to_owned()),
            (None, _) => Err("it never began".to_owned()),
        }
    }

    pub fn close_terminal(&mut self) {
        // Input makes the surrounding program close the terminal.
        let _ = self.input.as_mut().map(|input| input.write_all(b"\n"));
        self.input = None;
    }

    pub fn close_output(&mut self) {
        self.output = None;
    }

    /// Waits for the verb's end, and reports what is left: the verb itself, other processes, temporary files. After a kill,
    /// the next run removes the files.
    pub fn leftovers(mut self, killed: bool, leaves_command: bool) -> Option<String> {
        // A thread keeps reading, so that a full pipe does not block the verb.
        if let Some(mut output) = self.output.take() {
            thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        }
        let ours =
            |pid: &u32| !leaves_command || name(*pid).is_some_and(|name| name == "sweetspot");
        let mut last = Vec::new();
        let gone = wait_for(|| {
            // Reaps an ended child, so that it does not remain as a zombie.
            let _ = self.child.0.try_wait();
            last = self.marked().into_iter().filter(ours).collect();
            last.is_empty().then_some(())
        });
        for pid in self.marked() {
            Signal::KILL.send(pid);
        }
        if gone.is_none() {
            return Some(format!("these stay: {last:?}"));
        }
        let names = fs::read_dir(&self.own).ok()?.flatten().map(|file| file.file_name());
        // The lab's process is killed with its namespaces, and leaves a scratch directory.
        let is_of_lab = |name: &OsString| name.as_encoded_bytes().starts_with(b"sweetspot-lab-");
        let files: Vec<OsString> = names.filter(|name| !is_of_lab(name)).collect();
        (!files.is_empty() && !killed).then(|| format!("these files stay: {files:?}"))
    }

    /// The processes that descend from the verb.
    fn marked(&self) -> Vec<u32> {
        marked(&self.mark)
    }
}

/// The processes started with this mark, and their descendants.
pub fn marked(mark: &str) -> Vec<u32> {
    let marker = format!("{MARK}={mark}");
    let has_mark = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|word| word == marker.as_bytes())
    };
    processes::all().unwrap_or_default().into_iter().filter(has_mark).collect()
}

fn name(pid: u32) -> Option<String> {
    Process::read(pid).ok().map(|process| process.name)
}

/// Whether the process has the thread that every verb starts after parsing its command line.
fn has_lifeline(pid: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let is_lifeline = |name: String| name.trim() == "lifeline";
    threads
        .into_iter()
        .any(|thread| fs::read_to_string(thread.path().join("comm")).is_ok_and(is_lifeline))
}
