use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::Duration as StdDuration;

use socket2::{Domain, SockAddr, SockRef, Socket, Type};
use sweetspot_diagnose::recorded::Recording;
use sweetspot_emulator::{Emulation, Side};
use sweetspot_linux::clock;
use sweetspot_linux::tcp::options;
use sweetspot_units::{Bytes, Duration, Rate, Time};

use super::cause::{ExchangePattern, Fault, FlowPlan};
use super::field::LARGE_BUFFER;
use super::observe::{KernelObserver, Watched};
use super::offload::MergePoint;
use super::talk::{read_and_grant, write_as_granted, write_small};
use super::watch::PacketCapture;

const PORT: u16 = 4000;
/// Bytes per read.
const READ_BYTES: usize = 65_536;

/// A finished flow, as seen at each end.
pub struct FinishedFlow {
    pub at_sender: Vec<u8>,
    pub at_receiver: Vec<u8>,
    /// The kernel's counters at each end.
    pub live_at_sender: Recording,
    pub live_at_receiver: Recording,
    /// Whether the emulator's certificate confirms the run.
    pub trusted: bool,
}

/// Runs a flow from the near side to the far side.
pub fn run_plan(plan: &FlowPlan) -> Result<FinishedFlow, String> {
    let emulation =
        Emulation::start_behind(&plan.path, plan.middleboxes).map_err(|e| e.to_string())?;
    let near = emulation.near();
    let far = if plan.loopback { near } else { emulation.far() };
    let context = |what: &'static str| move |error: io::Error| format!("{what}: {error}");
    [near, far]
        .iter()
        .try_for_each(|side| side.run(|| set_up(plan))?)
        .map_err(context(UNPREPARED))?;
    if let Some(rate) = plan.shaped {
        shape(near, rate)?;
    }
    let listener = listen(far, plan).map_err(context("cannot listen"))?;
    let watches = [near, far].map(|side| PacketCapture::start(side, plan.loopback));
    let [at_sender, at_receiver] = watches.map(|w| w.map_err(context("cannot capture")));
    let (at_sender, at_receiver) = (at_sender?, at_receiver?);
    let observers = [(near, Watched::Opener), (far, Watched::Opened)];
    let observers = observers.map(|(side, end)| KernelObserver::start(side, end, PORT));
    let [live_at_sender, live_at_receiver] =
        observers.map(|o| o.map_err(context("cannot observe")));
    let (live_at_sender, live_at_receiver) = (live_at_sender?, live_at_receiver?);
    let address = SocketAddr::from((far.address(), PORT));
    let sender = connect(near, address, plan).map_err(context("cannot connect"))?;
    let ends = [sender.local_addr().map_err(context("cannot connect"))?, address];
    let until = clock::now() + plan.lasts;
    thread::scope(|scope| {
        let (receiver, _) = listener.accept().map_err(context("cannot accept"))?;
        if let Some(fault) = plan.fault {
            let deaf = if fault.at_sender { sender.try_clone() } else { receiver.try_clone() };
            let deaf = deaf.map_err(context("cannot make an end deaf"))?;
            scope.spawn(move || deafen(&deaf, fault, until));
        }
        if let Some(small) = plan.shrinks {
            let buffer = receiver.try_clone().map_err(context("cannot shrink a window"))?;
            scope.spawn(move || shrink(&buffer, small, until));
        }
        scope.spawn(|| write(sender, plan, until));
        match (plan.talk, plan.answer, plan.proxy) {
            (ExchangePattern::Granted { grant, .. }, ..) => {
                read_and_grant(receiver, grant, &mut vec![0; READ_BYTES]);
            }
            (_, Some(answer), _) => reply(receiver, plan.piece, answer),
            (_, None, true) => {
                hand_on(receiver, plan.read_at, until, far).map_err(context("cannot hand on"))?
            }
            (_, None, false) => read(receiver, plan.read_at, until),
        }
        Ok::<(), String>(())
    })?;
    let finished = |watch: PacketCapture, put_together: MergePoint| {
        let capture = watch.finish().map_err(context("cannot capture"))?;
        if plan.offload { put_together.apply(&capture) } else { Ok(capture) }
    };
    let finished = FinishedFlow {
        at_sender: finished(at_sender, MergePoint::BeforeSending)?,
        at_receiver: finished(at_receiver, MergePoint::OnArrival)?,
        live_at_sender: Recording {
            ends,
            samples: live_at_sender.finish()?,
            is_one_reading: false,
            totals: None,
        },
        live_at_receiver: Recording {
            ends: [ends[1], ends[0]],
            samples: live_at_receiver.finish()?,
            is_one_reading: false,
            totals: None,
        },
        trusted: emulation.finish().map_err(|e| e.to_string())?.verdict.trust,
    };
    Ok(finished)
}

/// The error message if a side cannot be prepared.
const UNPREPARED: &str = "cannot set up the network of a namespace";

/// Applies the plan's settings in the calling thread's namespace.
fn set_up(plan: &FlowPlan) -> io::Result<()> {
    let set = |name: &str, on: bool| {
        fs::write(format!("/proc/sys/net/ipv4/{name}"), if on { "1" } else { "0" })
    };
    set("tcp_timestamps", plan.timestamps)?;
    set("tcp_shrink_window", plan.shrinks.is_some())
}

/// A token bucket (tc-tbf(8)) on the device of `side`; the capture point comes after it.
fn shape(side: &Side, rate: Rate) -> Result<(), String> {
    let rate = format!("{}bit", rate.bits_per_second());
    let mut tc = Command::new("tc");
    tc.args(["qdisc", "add", "dev", "path0", "root", "tbf", "rate", &rate]);
    tc.args(["burst", "5000", "limit", "200000"]);
    let mut child = side.spawn(&mut tc).map_err(|e| e.to_string())?;
    let status = child.wait().map_err(|error| format!("cannot wait for tc: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("tc cannot shape the device: {status}")) }
}

fn listen(side: &Side, plan: &FlowPlan) -> io::Result<TcpListener> {
    let socket = side.run(|| Socket::new(Domain::IPV4, Type::STREAM, None))??;
    if let Some(size) = plan.receive_buffer {
        // The kernel doubles the request.
        socket.set_recv_buffer_size((size.get() / 2) as usize)?;
    }
    socket.bind(&SockAddr::from(SocketAddr::from((side.address(), PORT))))?;
    socket.listen(1)?;
    Ok(socket.into())
}

fn connect(side: &Side, to: SocketAddr, plan: &FlowPlan) -> io::Result<TcpStream> {
    let socket = side.run(|| Socket::new(Domain::IPV4, Type::STREAM, None))??;
    if let Some(size) = plan.send_buffer {
        socket.set_send_buffer_size((size.get() / 2) as usize)?;
    }
    socket.set_tcp_nodelay(plan.no_delay)?;
    options::set_congestion(&socket, plan.congestion)?;
    socket.connect(&SockAddr::from(to))?;
    Ok(socket.into())
}

/// Makes an end drop all segments for the duration of the fault.
fn deafen(end: &TcpStream, fault: Fault, until: Time) {
    let after = clock::now() + fault.after;
    clock::sleep_until(after);
    let _ = options::set_deaf(end, true);
    if let Some(lasts) = fault.lasts {
        clock::sleep_until((after + lasts).min(until));
        let _ = options::set_deaf(end, false);
    }
}

/// Alternately shrinks the receive buffer to `small` and restores it.
fn shrink(receiver: &TcpStream, small: Bytes, until: Time) {
    const TURN: Duration = Duration::from_millis(300);
    for size in [small, LARGE_BUFFER].into_iter().cycle() {
        clock::sleep_until(clock::now() + TURN);
        // The kernel doubles the request.
        let set = SockRef::from(receiver).set_recv_buffer_size((size.get() / 2) as usize);
        if set.is_err() || clock::now() >= until {
            return;
        }
    }
}

/// Answers each request of `request` bytes with `answer` bytes.
fn reply(mut client: TcpStream, request: Bytes, answer: Bytes) {
    let mut piece = vec![0; request.get() as usize];
    let answer = vec![0; answer.get() as usize];
    let _ = client.set_nodelay(true);
    while client.read_exact(&mut piece).is_ok() && client.write_all(&answer).is_ok() {}
}

/// A proxy: forwards data `from` the sender to a reader on the same host, which reads at `rate`.
fn hand_on(from: TcpStream, rate: Option<Rate>, until: Time, side: &Side) -> io::Result<()> {
    let socket = |side: &Side| side.run(|| Socket::new(Domain::IPV4, Type::STREAM, None))?;
    let inner = socket(side)?;
    inner.bind(&SockAddr::from(SocketAddr::from((side.address(), 0))))?;
    inner.listen(1)?;
    let address = inner.local_addr()?;
    let onward = socket(side)?;
    // A proxy's buffers are small compared with a transfer.
    onward.set_send_buffer_size(32_768)?;
    inner.set_recv_buffer_size(32_768)?;
    onward.connect(&address)?;
    let (reader, _) = inner.accept()?;
    thread::scope(|scope| {
        scope.spawn(move || read(reader.into(), rate, until));
        let (mut from, mut onward) = (from, TcpStream::from(onward));
        let _ = from.set_read_timeout(Some(StdDuration::from_secs(1)));
        let _ = onward.set_write_timeout(Some(StdDuration::from_secs(1)));
        let _ = io::copy(&mut from, &mut onward);
    });
    Ok(())
}

/// Reads until the end or the time limit, at the given rate.
fn read(mut from: TcpStream, rate: Option<Rate>, until: Time) {
    let mut piece = vec![0; READ_BYTES];
    let grace = until + Duration::from_secs(1);
    let _ = from.set_read_timeout(Some(StdDuration::from_secs(1)));
    // A program that reads slowly reads a little at a time.
    let size = if rate.is_some() { READ_BYTES / 8 } else { READ_BYTES };
    while clock::now() < grace {
        match from.read(&mut piece[..size]) {
            // A reader without data waits.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && clock::now() < until => {}
            Ok(0) | Err(_) => return,
            Ok(n) => {
                if let Some(rate) = rate {
                    clock::sleep_until(clock::now() + Bytes::new(n as u64) / rate);
                }
            }
        }
    }
}

/// Writes a piece or part of it.
fn write_piece(to: &mut TcpStream, talk: ExchangePattern, piece: &[u8]) -> io::Result<usize> {
    let ExchangePattern::TwoWrites { head } = talk else { return to.write(piece) };
    let (head, rest) = piece.split_at(head.get() as usize);
    to.write_all(head)?;
    to.write_all(rest).map(|()| piece.len())
}

/// Writes until the planned size or the time limit is reached.
fn write(mut to: TcpStream, plan: &FlowPlan, until: Time) {
    let piece = vec![0; plan.piece.get() as usize];
    let _ = to.set_write_timeout(Some(StdDuration::from_millis(500)));
    let mut left = plan.size.map_or(u64::MAX, Bytes::get);
    match plan.talk {
        ExchangePattern::Granted { window, .. } => write_as_granted(&mut to, &piece, window, until),
        ExchangePattern::SmallFirst { messages, size, pause } => {
            write_small(&mut to, messages, &piece[..size.get() as usize], pause);
        }
        ExchangePattern::Plain | ExchangePattern::TwoWrites { .. } => {}
    }
    let mut due = clock::now();
    while left > 0 && clock::now() < until {
        match write_piece(&mut to, plan.talk, &piece[..plan.piece.get().min(left) as usize]) {
            Ok(n) => left -= n as u64,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
        if let Some(answer) = plan.answer {
            let mut answer = vec![0; answer.get() as usize];
            if to.read_exact(&mut answer).is_err() {
                return;
            }
        }
        if let Some(pause) = plan.pause {
            due += pause;
            clock::sleep_until(due);
        }
    }
    if plan.size.is_none() {
        // The data left in the buffer is not needed, so reset the connection.
        let _ = SockRef::from(&to).set_linger(Some(StdDuration::ZERO));
    } else if to.shutdown(Shutdown::Write).is_ok() {
        // Waits until the other side has closed, too.
        let _ = to.set_read_timeout(Some(StdDuration::from_secs(1)));
        let _ = to.read(&mut [0]);
    }
}
