//! A connection sized from both ends over an emulated path, in its own namespaces, compared with one sized from one end.

use std::error::Error;
use std::fmt;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

use sweetspot_emulator::{Emulation, isolate};
use sweetspot_linux::clock;
use sweetspot_path::PathSpec;
use sweetspot_socket::{BothEnds, INVITATION_BYTES, Options, SizedSocket, SizingPhase, now};
use sweetspot_units::{Bytes, Duration};

/// 50 Mbit/s x 40 ms = 250 kB; the buffer holds twice that.
const PATH: &str = "rate=50Mbit/s rtt=40ms buffer=2bdp";
const BDP: f64 = 250e3;
const BYTES: usize = 50_000_000;
const PORT: u16 = 9000;
const ATTEMPTS: u32 = 3;

fn main() {
    // The test binary runs itself at both ends.
    let words: Vec<String> = std::env::args().collect();
    match words.iter().position(|word| word == "send" || word == "receive") {
        Some(at) if words[at] == "send" => return send(),
        Some(at) => return receive(&words[at + 1], words[at + 2] == "joins").unwrap(),
        None => {}
    }
    let path: PathSpec = PATH.parse().expect("a path");
    let holds = || match compare(&path) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("{error}");
            1
        }
    };
    match isolate(holds) {
        Ok(code) => assert!(code == 0, "see above"),
        Err(error) => return sweetspot_testing::skipped(error),
    }
    println!("test result: ok. 1 passed");
}

/// A receiver's measurements.
struct Outcome {
    /// Time from the first byte to the first held window, seconds; infinite if there was none.
    held_after: f64,
    /// The limit one second after the first hold, bytes.
    limit: f64,
    /// Means over the second half: RTT, seconds, and payload rate, bit/s.
    rtt: f64,
    rate: f64,
    /// Whether the peer's library answered.
    both_ends: bool,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { held_after, limit, rtt, rate, both_ends } = self;
        write!(f, "{held_after} {limit} {rtt} {rate} {}", u8::from(*both_ends))
    }
}

impl Outcome {
    fn parse(text: &str) -> Outcome {
        let numbers: Vec<f64> = text.split_whitespace().map(|n| n.parse().unwrap()).collect();
        let [held_after, limit, rtt, rate, both_ends] = numbers[..] else { panic!("{text}") };
        Outcome { held_after, limit, rtt, rate, both_ends: both_ends > 0.0 }
    }
}

fn compare(path: &PathSpec) -> Result<(), Box<dyn Error>> {
    let live = run(path, "ignores")?;
    eprintln!("one end:   held after {:.2} s, {live}", live.held_after);
    if live.both_ends {
        return Err("a peer that was not joined does not answer".into());
    }
    if live.held_after.is_finite() && !is_near_bdp(live.limit) {
        return Err("a held window is about the path's 250 kB".into());
    }
    // If other programs delay packets, trains may disagree. Congestion control is then left alone, as without Sweetspot.
    for _ in 0..ATTEMPTS {
        let both = run(path, "joins")?;
        eprintln!("both ends: held after {:.2} s, {both}", both.held_after);
        if !both.both_ends {
            return Err("a peer that was joined answers".into());
        }
        // Trains take a few round trips. A trial begins only with a standing queue, and takes several epochs.
        let is_sooner = both.held_after <= 1.0 && both.held_after <= live.held_after / 2.0;
        if is_sooner && is_near_bdp(both.limit) {
            // Without a limit the queue of 80 ms fills.
            return if both.rtt <= 0.060 { Ok(()) } else { Err("no queue stands".into()) };
        }
    }
    Err("both ends hold sooner, at about the path's 250 kB".into())
}

fn is_near_bdp(limit: f64) -> bool {
    (0.9 * BDP..1.3 * BDP).contains(&limit)
}

fn run(path: &PathSpec, peer: &str) -> Result<Outcome, Box<dyn Error>> {
    let emulation = Emulation::start(path)?;
    let this = std::env::current_exe()?;
    let mut sender = emulation.far().spawn(Command::new(&this).arg("send"))?;
    // Give the server time to listen.
    clock::sleep_until(clock::now() + Duration::from_millis(300));
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$0\" receive \"$SWEETSPOT_FAR:9000\" \"$1\""]).arg(&this).arg(peer);
    let mut receiver = emulation.near().spawn(command.stdout(Stdio::piped()))?;
    let mut printed = String::new();
    receiver.stdout.take().expect("a pipe").read_to_string(&mut printed)?;
    receiver.wait()?;
    let _ = sender.kill();
    sender.wait()?;
    emulation.finish()?;
    Ok(Outcome::parse(&printed))
}

/// Invites each client, and sends.
fn send() {
    let (mut client, _) = TcpListener::bind(("0.0.0.0", PORT)).unwrap().accept().unwrap();
    let (both_ends, invitation) = BothEnds::invite(&client).unwrap();
    let options = Options { both_ends: Some(both_ends), ..Options::default() };
    let _sized = SizedSocket::attach(&client, options).unwrap();
    client.write_all(&invitation).unwrap();
    let _ = client.write_all(&vec![0; BYTES]);
}

fn receive(to: &str, joins: bool) -> Result<(), Box<dyn Error>> {
    let mut stream = TcpStream::connect(to)?;
    let mut invitation = [0; INVITATION_BYTES];
    stream.read_exact(&mut invitation)?;
    let both_ends = if joins { Some(BothEnds::join(&invitation)?) } else { None };
    let sized = SizedSocket::attach(&stream, Options { both_ends, ..Options::default() })?;
    let (begun, mut bytes, mut block) = (now(), 0, vec![0; 64 * 1024]);
    let (mut outcome, mut rtts) = (
        Outcome { held_after: f64::INFINITY, limit: 0.0, rtt: 0.0, rate: 0.0, both_ends: false },
        Vec::new(),
    );
    while bytes < BYTES {
        let n = stream.read(&mut block)?;
        if n == 0 {
            break;
        }
        bytes += n;
        let (report, after) = (sized.report()?, now().since(begun).as_secs_f64());
        outcome.both_ends |= report.both_ends;
        if report.phase == SizingPhase::Holding && outcome.held_after.is_infinite() {
            outcome.held_after = after;
        }
        if report.phase == SizingPhase::Holding && after < outcome.held_after + 1.0 {
            outcome.limit = report.limit.map_or(0.0, Bytes::as_f64);
        }
        if bytes > BYTES / 2 {
            rtts.extend(report.rtt.map(Duration::as_secs_f64));
        }
    }
    outcome.rtt = rtts.iter().sum::<f64>() / rtts.len().max(1) as f64;
    outcome.rate = bytes as f64 * 8.0 / now().since(begun).as_secs_f64();
    println!("{outcome}");
    Ok(())
}
