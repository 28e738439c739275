//! Laws of the loop around a controller, with a scripted controller.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use sweetspot_control::series::{SeriesRecord, SeriesRow};
use sweetspot_control::{ControlLoop, TransferEffect};
use sweetspot_protocol::probe::{
    PROBE_INTERVAL, PacketAuthenticator, ProbeAnswer, ProbePacket, TrainPacket,
};
use sweetspot_protocol::{CongestionMessage, Message, RttSource, Secret, Session};
use sweetspot_sizing::{
    CONTROL_INTERVAL, CongestionChoice, Controller, EventKind, Input, KernelView, Needs, Output,
    PROBE_SIZE, Probe, Probing, SenderReport, SizingEvent, SizingPhase, Train, TrainRequest,
};
use sweetspot_units::{Bytes, Duration, Rate, Time};

/// The length of the IPv4 and UDP headers.
const HEADERS: Bytes = Bytes::new(28);
const QUIET: KernelView =
    KernelView { window: None, rtt: None, minimum_rtt: None, out_of_order: 0 };
/// About ten segments. The wire format does not round numbers below 4096, or with few one bits.
const CWND: Bytes = Bytes::new(10 * 1024);
const TRAIN: TrainRequest = TrainRequest { packets: 3, size: Bytes::new(1500) };

/// The inputs that the controller got, and its next outputs.
#[derive(Debug)]
struct Script {
    outputs: VecDeque<Output>,
    probing: Probing,
    probes: Vec<Probe>,
    reports: Vec<SenderReport>,
    minima: Vec<Duration>,
    kernel_rtts: Vec<Duration>,
    trains: Vec<Train>,
    windows: Vec<Bytes>,
}

#[derive(Clone)]
struct Scripted(Arc<Mutex<Script>>);

impl Scripted {
    /// A controller that wants to probe in this way.
    fn new(probing: Probing) -> Scripted {
        Scripted(Arc::new(Mutex::new(Script {
            outputs: VecDeque::new(),
            probing,
            probes: Vec::new(),
            reports: Vec::new(),
            minima: Vec::new(),
            kernel_rtts: Vec::new(),
            trains: Vec::new(),
            windows: Vec::new(),
        })))
    }

    fn with<T>(&self, f: impl FnOnce(&mut Script) -> T) -> T {
        f(&mut self.0.lock().unwrap())
    }
}

impl Controller for Scripted {
    fn handle(&mut self, _now: Time, input: &Input) {
        self.with(|s| match *input {
            Input::Probe(probe) => s.probes.push(probe),
            Input::Sender(report) => s.reports.push(report),
            Input::KernelRtt(rtt) => s.kernel_rtts.push(rtt),
            Input::MinimumRtt(rtt) => s.minima.push(rtt),
            Input::Train(train) => s.trains.push(train),
            Input::Window { advertised } => s.windows.push(advertised),
            _ => {}
        });
    }
    fn poll_timeout(&self) -> Option<Time> {
        self.with(|s| (!s.outputs.is_empty()).then_some(Time::ZERO))
    }
    fn poll_output(&mut self) -> Option<Output> {
        self.with(|s| s.outputs.pop_front())
    }
    fn needs(&self) -> Needs {
        self.with(|s| Needs {
            probes: s.probing,
            trains: true,
            minimum_rtt: true,
            window: true,
            data: true,
            ..Needs::NOTHING
        })
    }
    fn phase(&self) -> SizingPhase {
        SizingPhase::Ramping
    }
}

struct Rig {
    control_loop: ControlLoop,
    script: Scripted,
    authenticator: PacketAuthenticator,
}

fn ms(n: u64) -> Time {
    Time::ZERO + Duration::from_millis(n)
}

impl Rig {
    /// With or without the means to send probes.
    fn new(means: bool) -> Rig {
        Rig::of(Scripted::new(Probing::Periodic), means)
    }

    fn of(script: Scripted, means: bool) -> Rig {
        let session = Session::new(Some(&Secret([1; 16])), &[2; 32]);
        let authenticator = PacketAuthenticator::new(&session);
        let given = means.then(|| authenticator.clone());
        let controller = Box::new(script.clone());
        let control_loop = ControlLoop::new(controller, Time::ZERO, Time::ZERO, given, HEADERS);
        Rig { control_loop, script, authenticator }
    }

    /// Sets the controller's next outputs.
    fn wants(&self, outputs: &[Output]) {
        self.script.with(|s| s.outputs.extend(outputs));
    }

    fn effects(&mut self) -> Vec<TransferEffect> {
        std::iter::from_fn(|| self.control_loop.poll_effect()).collect()
    }

    fn timeout(&mut self, at: Time, kernel: &KernelView) -> Vec<TransferEffect> {
        self.control_loop.handle_timeout(at, kernel);
        self.effects()
    }

    /// The row that is due at `at`.
    fn row(&mut self, at: Time, kernel: &KernelView) -> SeriesRow {
        let row = self.timeout(at, kernel).into_iter().find_map(|effect| match effect {
            TransferEffect::Record(SeriesRecord::Row(row)) => Some(row),
            _ => None,
        });
        row.unwrap()
    }

    /// The numbers of the probes in `effects`.
    fn probes(&self, effects: &[TransferEffect]) -> Vec<u32> {
        let probe = |effect: &TransferEffect| match effect {
            TransferEffect::Send(datagram) => {
                assert_eq!(Bytes::new(datagram.len() as u64) + HEADERS, PROBE_SIZE);
                match self.authenticator.open(datagram) {
                    Some(ProbePacket::Probe { sequence }) => Some(sequence),
                    other => panic!("{other:?}"),
                }
            }
            _ => None,
        };
        effects.iter().filter_map(probe).collect()
    }

    fn answer(&mut self, at: Time, probe: u32) {
        let report = SenderReport { cwnd: CWND, ..SenderReport::default() };
        let packet = ProbePacket::Answer(ProbeAnswer {
            probe,
            sequence: probe,
            held: Duration::ZERO,
            report,
        });
        let datagram = self.authenticator.close(&packet, PROBE_SIZE.saturating_sub(HEADERS));
        self.control_loop.handle_datagram(at, at, &datagram);
    }
}

/// The steering messages in `effects`.
fn last_control(effects: &[TransferEffect]) -> Vec<&Message> {
    let mut messages = Vec::new();
    for effect in effects {
        if let TransferEffect::Tell(message) = effect {
            messages.push(message);
        }
    }
    messages
}

#[test]
fn probes_leave_every_20_ms_once_the_sender_can_be_reached() {
    let mut rig = Rig::new(true);
    let effects = rig.timeout(ms(0), &QUIET);
    assert!(rig.probes(&effects).is_empty());
    rig.control_loop.handle_reachable(ms(5));
    let mut sent = Vec::new();
    let mut now = ms(5);
    while now < ms(105) {
        let effects = rig.timeout(now, &QUIET);
        sent.extend(rig.probes(&effects).into_iter().map(|n| (now, n)));
        now = rig.control_loop.poll_timeout();
    }
    let expected: Vec<_> = (0..5).map(|n| (ms(5) + PROBE_INTERVAL * n, n as u32)).collect();
    assert_eq!(sent, expected);
}

#[test]
fn the_loop_never_sleeps_longer_than_the_control_interval() {
    let mut rig = Rig::new(false);
    for n in 0..100 {
        let now = ms(10 * n);
        rig.timeout(now, &QUIET);
        assert!(rig.control_loop.poll_timeout() <= now + CONTROL_INTERVAL);
    }
}

#[test]
fn the_advertised_window_is_read_once_per_control_interval() {
    let mut rig = Rig::new(false);
    for (at, window) in [(0, 65_536), (5, 70_000), (10, 150_528)] {
        let kernel = KernelView { window: Some(Bytes::new(window)), ..QUIET };
        rig.timeout(ms(at), &kernel);
    }
    // At 5 ms the control interval was not over.
    assert_eq!(rig.script.with(|s| s.windows.clone()), [65_536, 150_528].map(Bytes::new));
    assert_eq!(rig.control_loop.measured().window, Some(Bytes::new(150_528)));
}

#[test]
fn the_actuator_gets_the_limit_and_the_sender_both_limit_and_pacing() {
    let mut rig = Rig::new(false);
    let window = Bytes::new(1_250_000);
    rig.wants(&[
        Output::Window(Some(window)),
        Output::Pacing(Some(Rate::from_mbit_per_second(95))),
    ]);
    let effects = rig.timeout(ms(0), &QUIET);
    assert_eq!(effects[0], TransferEffect::Limit(Some(window)));
    // One message carries both values: it replaces the unsent one with only the window.
    let steer = Message::Steer {
        pacing_bps: Some(95_000_000),
        window: Some(1_250_000),
        congestion: CongestionMessage::Own,
        phase: "ramping".into(),
    };
    assert_eq!(last_control(&effects), [&steer]);
    assert_eq!(rig.control_loop.requested_window(), Some(window));

    rig.wants(&[Output::Window(None)]);
    let effects = rig.timeout(ms(10), &QUIET);
    assert_eq!(effects[0], TransferEffect::Limit(None));
    let Message::Steer { window, .. } = last_control(&effects)[0] else { panic!() };
    assert_eq!(*window, Some(u64::MAX), "no limit");
}

#[test]
fn every_control_message_repeats_the_latest_congestion_choice() {
    let mut rig = Rig::new(false);
    rig.wants(&[Output::Congestion(CongestionChoice::Bbr)]);
    let chosen = |effects: &[TransferEffect]| match last_control(effects)[..] {
        [Message::Steer { congestion, .. }] => *congestion,
        ref other => panic!("{other:?}"),
    };
    assert_eq!(chosen(&rig.timeout(ms(0), &QUIET)), CongestionMessage::Bbr);
    rig.wants(&[Output::Pacing(None)]);
    assert_eq!(chosen(&rig.timeout(ms(10), &QUIET)), CongestionMessage::Bbr);
    rig.wants(&[Output::Congestion(CongestionChoice::Own)]);
    assert_eq!(chosen(&rig.timeout(ms(20), &QUIET)), CongestionMessage::Own);
}

#[test]
fn the_controller_gets_the_handshake_rtt_before_the_first_data() {
    let mut rig = Rig::new(true);
    let minimum_rtt = Duration::from_micros(400);
    rig.timeout(ms(0), &KernelView { minimum_rtt: Some(minimum_rtt), ..QUIET });
    assert_eq!(rig.script.with(|s| s.minima.clone()), [minimum_rtt]);
}

#[test]
fn a_controller_without_probing_sends_no_probes() {
    let mut rig = Rig::of(Scripted::new(Probing::Never), true);
    rig.control_loop.handle_reachable(ms(0));
    let sent: Vec<_> = (0..100).flat_map(|n| rig.timeout(ms(10 * n), &QUIET)).collect();
    assert!(rig.probes(&sent).is_empty());
}

#[test]
fn a_train_waits_until_the_sender_can_be_reached() {
    let mut rig = Rig::new(true);
    rig.wants(&[Output::Train(TRAIN)]);
    let effects = rig.timeout(ms(0), &QUIET);
    assert!(!last_control(&effects).iter().any(|m| matches!(m, Message::Train { .. })));
    rig.control_loop.handle_reachable(ms(50));
    let effects = rig.effects();
    // 1500 bytes on the wire carry 1472 bytes of UDP payload over IPv4.
    assert_eq!(
        last_control(&effects),
        [&Message::Train { id: 0, packets: 3, payload_bytes: 1472 }]
    );

    for index in 0..3 {
        let packet = ProbePacket::Train(TrainPacket { train: 0, index });
        let arrived = ms(100) + Duration::from_micros(120) * u64::from(index);
        let datagram = rig.authenticator.close(&packet, Bytes::new(1472));
        rig.control_loop.handle_datagram(ms(101), arrived, &datagram);
    }
    let trains = rig.script.with(|s| s.trains.clone());
    // 1500 B every 120 us: 100 Mbit/s.
    assert_eq!(trains[0].rate(), Some(Rate::from_mbit_per_second(100)));
}

#[test]
fn without_probes_trains_fail_at_once_and_the_kernel_gives_the_rtt() {
    let mut rig = Rig::new(false);
    rig.wants(&[Output::Train(TRAIN)]);
    let rtt = Duration::from_millis(37);
    let least = Duration::from_micros(36_500);
    rig.timeout(ms(0), &KernelView { rtt: Some(rtt), minimum_rtt: Some(least), ..QUIET });
    assert_eq!(rig.script.with(|s| s.trains.clone())[0].received, 0);
    assert_eq!(rig.script.with(|s| s.kernel_rtts.clone()), [rtt]);
    let measured = rig.control_loop.measured();
    assert_eq!(measured.rtt_source, RttSource::Kernel);
    // The kernel's min RTT has microseconds; its RTT estimate has whole milliseconds.
    assert_eq!(measured.rtt.map(|[minimum, ..]| minimum), Some(least));
    assert!(measured.probes.fallback && measured.probes.sent == 0);
}

#[test]
fn the_kernel_rtt_replaces_unanswered_probes_until_they_return() {
    let mut rig = Rig::new(true);
    rig.wants(&[Output::Train(TRAIN)]);
    let kernel = KernelView { rtt: Some(Duration::from_millis(37)), ..QUIET };
    let mut notes = 0;
    for n in 0..=120 {
        let effects = rig.timeout(ms(10 * n), &kernel);
        notes += effects.iter().filter(|e| matches!(e, TransferEffect::Note(_))).count();
        let silent = n <= 100;
        assert_eq!(rig.script.with(|s| s.kernel_rtts.is_empty()), silent, "{n}");
    }
    assert_eq!(notes, 1, "reported once");
    assert_eq!(rig.script.with(|s| s.trains.clone())[0].received, 0, "no train will come");

    rig.control_loop.handle_reachable(ms(1210));
    rig.timeout(ms(1210), &kernel);
    rig.answer(ms(1250), 0);
    let before = rig.script.with(|s| s.kernel_rtts.len());
    rig.timeout(ms(1260), &kernel);
    assert_eq!(rig.script.with(|s| s.kernel_rtts.len()), before);
    assert_eq!(rig.script.with(|s| s.probes[0].rtt), Duration::from_millis(40));
    assert_eq!(rig.script.with(|s| s.reports[0].cwnd), CWND);
    assert_eq!(rig.control_loop.measured().rtt_source, RttSource::Probes);
}

#[test]
fn a_row_has_an_rtt_only_if_measured_since_the_previous_row() {
    let mut rig = Rig::new(true);
    rig.control_loop.handle_reachable(ms(0));
    rig.timeout(ms(0), &QUIET);
    rig.answer(ms(40), 0);
    let kernel = KernelView { rtt: Some(Duration::from_millis(37)), ..QUIET };
    assert_eq!([50, 100].map(|t| rig.row(ms(t), &kernel).rtt_s), [Some(0.04), None]);
    assert_eq!(rig.control_loop.measured().rtt_source, RttSource::Probes);
    // Once probing ends, the rows have the kernel's estimate. Once it covers most rows, so does the result.
    rig.script.with(|s| s.probing = Probing::Never);
    assert_eq!([150, 200, 250].map(|t| rig.row(ms(t), &kernel).rtt_s), [Some(0.037); 3]);
    assert_eq!(rig.control_loop.measured().rtt_source, RttSource::Kernel);
}

#[test]
fn datagrams_not_authenticated_by_the_sender_change_nothing() {
    let mut rig = Rig::new(true);
    rig.control_loop.handle_reachable(ms(0));
    rig.timeout(ms(0), &QUIET);
    let other = PacketAuthenticator::new(&Session::new(Some(&Secret([9; 16])), &[2; 32]));
    let report = SenderReport::default();
    let answer = ProbeAnswer { probe: 0, sequence: 0, held: Duration::ZERO, report };
    let datagram = other.close(&ProbePacket::Answer(answer), Bytes::new(72));
    rig.control_loop.handle_datagram(ms(1), ms(1), &datagram);
    // Neither does a probe that is sent back unchanged.
    let echo = rig.authenticator.close(&ProbePacket::Probe { sequence: 0 }, Bytes::new(72));
    rig.control_loop.handle_datagram(ms(1), ms(1), &echo);
    assert!(rig.script.with(|s| s.probes.is_empty()));
}

#[test]
fn rows_count_every_byte_of_content_once() {
    let mut rig = Rig::new(false);
    let (mut rows, mut events) = (Vec::new(), 0);
    let kind = EventKind::Lifted;
    rig.wants(&[Output::Event(SizingEvent { at: ms(3), kind })]);
    for n in 0..=100 {
        rig.control_loop.handle_content(Bytes::new(12_500));
        for effect in rig.timeout(ms(10 * n), &QUIET) {
            match effect {
                TransferEffect::Record(SeriesRecord::Row(row)) => rows.push(row),
                TransferEffect::Record(SeriesRecord::Event(mark)) => {
                    assert_eq!((mark.t_s, &*mark.event), (0.003, "lifted"));
                    events += 1;
                }
                _ => {}
            }
        }
    }
    assert_eq!(events, 1);
    // The second has a row every 50 ms; 12,500 B every 10 ms are 10 Mbit/s.
    assert_eq!(rows.len(), 20);
    assert_eq!(rows.last().unwrap().bytes, 101 * 12_500);
    for row in &rows[1..] {
        assert!((row.goodput_bps - 1e7).abs() < 1.0, "{row:?}");
    }
}
