//! Programs that download over an emulated path, and the invariants for each.

#![allow(dead_code)] // each test program uses a part

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use sweetspot_emulator::{Emulation, isolate};
use sweetspot_linux::clock;
use sweetspot_path::PathSpec;
use sweetspot_units::Duration;

/// 50 Mbit/s x 40 ms = 250 kB; the buffer holds twice that.
const PATH: &str = "rate=50Mbit/s rtt=40ms buffer=2bdp";
/// The BDP plus 60 ms of queue.
pub const WINDOW: &str = "fixed:625kB";
const LIMIT: u64 = 625_000;
pub const BYTES: usize = 12_000_000;
pub const PORT: u16 = 9000;
/// The argument with which a test runs itself as the server at the far end.
const SERVE: &str = "serve";

/// A program under test.
pub struct Example {
    pub name: &'static str,
    pub program: PathBuf,
    /// Its arguments, given the server's HOST:PORT and the file to write.
    pub arguments: fn(&str, &Path) -> Vec<String>,
    /// Whether it writes the download to standard output.
    pub prints_body: bool,
    /// Whether it reads without sending a request, and discards the data.
    pub is_plain: bool,
}

/// The main function of a test program: each example downloads over its own path.
pub fn main(examples: impl FnOnce(&Path) -> Vec<Example>) {
    if let Some(place) = std::env::args().position(|word| word == SERVE) {
        return serve(std::env::args().nth(place + 1).is_some());
    }
    let scratch = tempfile::tempdir().expect("a directory");
    let examples = examples(scratch.path());
    let failed = isolate(|| {
        let wrong = |example: &Example| laws(example, scratch.path()).err();
        let wrong: Vec<String> = examples.iter().filter_map(wrong).collect();
        wrong.iter().for_each(|why| eprintln!("{why}"));
        u8::from(!wrong.is_empty())
    });
    match failed {
        Ok(code) => assert!(code == 0, "a download broke a law"),
        Err(error) => return sweetspot_testing::skipped(error),
    }
    println!("test result: ok. {} passed", examples.len());
}

/// The content of the server's file.
fn body() -> Vec<u8> {
    (0..BYTES).map(|n| (n % 251) as u8).collect()
}

/// Sends the file to each client, without waiting for a request if `is_plain`, and keeps the connection open.
fn serve(is_plain: bool) {
    let listener = TcpListener::bind(("0.0.0.0", PORT)).unwrap();
    for client in listener.incoming().map(Result::unwrap) {
        std::thread::spawn(move || answer(client, is_plain));
    }
}

fn answer(mut client: TcpStream, is_plain: bool) -> std::io::Result<()> {
    let file = body();
    if is_plain {
        return client.write_all(&file);
    }
    let mut lines = BufReader::new(client.try_clone()?).lines();
    while let Some(line) = lines.next().transpose()? {
        if line.is_empty() {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", file.len());
            client.write_all(head.as_bytes())?;
            client.write_all(&file)?;
        }
    }
    Ok(())
}

/// The download is complete and correct, its socket was sized, and no limit remained at the end.
fn laws(example: &Example, scratch: &Path) -> Result<(), String> {
    let describe = |why: &str| format!("{}: {why}", example.name);
    let done = download(example, scratch).map_err(|error| describe(&error))?;
    eprint!("{}: {}", example.name, done.printed);
    let is_whole = match example.is_plain {
        true => done.printed.starts_with(&format!("{BYTES} bytes")),
        false => done.file == body(),
    };
    // 625 kB / 50 Mbit/s = 100 ms: without the library the buffer fills, which takes 120 ms.
    let is_sized = done.printed.contains("holding") && done.printed.contains("limited by ");
    let clamps = done.trace.as_deref().map(clamps);
    let is_limited = clamps.as_ref().is_none_or(|clamps| clamps.contains(&LIMIT));
    let is_lifted = clamps.as_ref().is_none_or(|c| c.last().is_some_and(|last| *last > LIMIT));
    let holds = [
        (is_whole, "the download is not what the server has"),
        (is_sized, "the socket was not sized"),
        (is_limited, "the window was not limited"),
        (is_lifted, "the limit was left on the socket"),
    ];
    match holds.into_iter().find(|(holds, _)| !holds) {
        Some((_, why)) => Err(describe(&format!("{why}: {} {clamps:?}", done.printed))),
        None => Ok(()),
    }
}

struct Downloaded {
    printed: String,
    file: Vec<u8>,
    /// The setsockopt(2) calls; `None` without strace.
    trace: Option<String>,
}

fn download(example: &Example, scratch: &Path) -> Result<Downloaded, String> {
    let path: PathSpec = PATH.parse().expect("a path");
    let emulation = Emulation::start(&path).map_err(|e| e.to_string())?;
    let this = std::env::current_exe().expect("a path");
    let mut server = Command::new(this);
    server.arg(SERVE).args(example.is_plain.then_some("plain"));
    let mut server = emulation.far().spawn(&mut server).map_err(|e| e.to_string())?;
    // Give the server time to listen.
    clock::sleep_until(clock::now() + Duration::from_millis(300));
    let at = |name: &str| scratch.join(format!("{}.{name}", example.name));
    let (file, trace) = (at("file"), at("trace"));
    let (output, errors) = (at("output"), at("errors"));
    let mut command = traced(&example.program, &trace);
    let far = format!("{}:{PORT}", emulation.far().address());
    command.args((example.arguments)(&far, &file)).env_remove("http_proxy");
    command.stdout(File::create(&output).expect("a file"));
    command.stderr(File::create(&errors).expect("a file"));
    let mut client = emulation.near().spawn(&mut command).map_err(|e| e.to_string())?;
    let ended = client.wait().expect("a client");
    let _ = server.kill();
    server.wait().expect("a server");
    emulation.finish().map_err(|e| e.to_string())?;
    let read = |path: &Path| fs::read(path).unwrap_or_default();
    let (output, errors) = (read(&output), read(&errors));
    let errors = String::from_utf8_lossy(&errors).into_owned();
    if !ended.success() {
        return Err(format!("{ended}: {errors}"));
    }
    let printed = || String::from_utf8_lossy(&output).into_owned();
    let (printed, file) =
        if example.prints_body { (errors, output) } else { (printed(), read(&file)) };
    Ok(Downloaded { printed, file, trace: fs::read_to_string(&trace).ok() })
}

/// Runs the program under strace, if that is installed.
fn traced(program: &Path, trace: &Path) -> Command {
    if Command::new("strace").arg("-V").output().is_err() {
        sweetspot_testing::skipped("limits were not watched: no strace (apt-get install strace)");
        return Command::new(program);
    }
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "--seccomp-bpf", "-e", "trace=setsockopt", "-o"]).arg(trace);
    strace.arg(program);
    strace
}

/// The clamps set, in order, from lines like `7 setsockopt(3, SOL_TCP, TCP_WINDOW_CLAMP, [625000], 4) = 0`.
fn clamps(trace: &str) -> Vec<u64> {
    let value =
        |line: &str| line.split_once("TCP_WINDOW_CLAMP, [")?.1.split_once(']')?.0.parse().ok();
    trace.lines().filter(|line| line.ends_with("= 0")).filter_map(value).collect()
}
