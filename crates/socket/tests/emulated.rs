//! The example receiver across an emulated path, in namespaces of its own.

use std::io::Write;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;

use sweetspot_emulator::{Emulation, EmulatorError, isolate};
use sweetspot_linux::clock;
use sweetspot_path::PathSpec;
use sweetspot_units::Duration;

/// 50 Mbit/s x 40 ms = 250 kB; the buffer holds twice that.
const PATH: &str = "rate=50Mbit/s rtt=40ms buffer=2bdp";
/// The path and 60 ms of queue.
const WINDOW: &str = "fixed:625kB";
const BYTES: usize = 12_000_000;
const PORT: u16 = 9000;

fn main() {
    // The test runs itself at the far end.
    if std::env::args().any(|word| word == "send") {
        return send();
    }
    let path: PathSpec = PATH.parse().expect("a path");
    let failed = match isolate(|| u8::from(!the_receiver_holds_its_window(&path))) {
        Ok(code) => code != 0,
        Err(error) => return sweetspot_testing::skipped(error),
    };
    assert!(!failed, "the receiver did not hold its window");
    println!("test result: ok. 1 passed");
}

/// Sends to whoever connects.
fn send() {
    let (mut client, _) = TcpListener::bind(("0.0.0.0", PORT)).unwrap().accept().unwrap();
    client.write_all(&vec![0; BYTES]).unwrap();
}

fn the_receiver_holds_its_window(path: &PathSpec) -> bool {
    match receive(path) {
        Ok(said) => {
            eprint!("{said}");
            // 625 kB / 50 Mbit/s = 100 ms: without the library the buffer fills, which takes 120 ms.
            let holds = said.contains("phase holding") && said.contains("a window of 625");
            holds && said.starts_with(&format!("{BYTES} bytes"))
        }
        Err(error) => {
            eprintln!("{error}");
            false
        }
    }
}

/// The output of the example at the near end.
fn receive(path: &PathSpec) -> Result<String, EmulatorError> {
    let emulation = Emulation::start(path)?;
    let this = std::env::current_exe().expect("a path");
    let mut sender = emulation.far().spawn(Command::new(&this).arg("send"))?;
    // Until it listens.
    clock::sleep_until(clock::now() + Duration::from_millis(300));
    let to = tempfile(&this);
    let file = std::fs::File::create(&to).expect("a file");
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$0\" \"$SWEETSPOT_FAR:9000\" \"$1\""]).arg(example(&this));
    let mut receiver = emulation.near().spawn(command.arg(WINDOW).stdout(file))?;
    receiver.wait().expect("a receiver");
    let _ = sender.kill();
    sender.wait().expect("a sender");
    emulation.finish()?;
    let said = std::fs::read_to_string(&to).expect("an output");
    let _ = std::fs::remove_file(&to);
    Ok(said)
}

fn tempfile(this: &std::path::Path) -> PathBuf {
    this.with_extension(format!("{}.txt", std::process::id()))
}

/// The example `receive`, which cargo builds with the tests.
fn example(this: &std::path::Path) -> PathBuf {
    let target = this.parent().and_then(std::path::Path::parent).expect("target/debug");
    target.join("examples/receive")
}
