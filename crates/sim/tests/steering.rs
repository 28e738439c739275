//! The inputs of a receiver's controller from a simulated connection, and the sender's response to its output.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use common::simulate_recorded;
use sweetspot_scenario::{NoRecorder, Outcome, Recorder, Sample, Scenario};
use sweetspot_sim::{ControllerMaker, run_steered};
use sweetspot_sizing::{
    CongestionChoice, Controller, EventKind, Input, Needs, Output, Sizing, SizingEvent, SizingPhase,
};
use sweetspot_units::{Duration, Time};

/// 20 Mbit/s, 40 ms, Linux hosts, and a buffer that two seconds of data do not fill.
const PATH: &str = r#"
    duration = "2s"
    [path]
    rate = "20Mbit/s"
    rtt = "40ms"
    buffer = "5000pkt"
    packet = "1500B"
    reverse = "clean"
    [tcp]
    flavour = "linux"
    [[transfer]]
    congestion = "cubic"
    sizing = "kernel"
"#;

fn steered(overrides: &[&str], make: ControllerMaker) -> Outcome {
    let overrides: Vec<String> = overrides.iter().map(|o| (*o).to_owned()).collect();
    let scenario = Scenario::parse_with(PATH, &overrides).unwrap();
    run_steered(&scenario, &mut NoRecorder, vec![Some(make)])
}

/// Requests a congestion control when the first data arrive, and nothing else.
struct RequestsCongestion {
    choice: Option<CongestionChoice>,
    has_data: bool,
}

impl Controller for RequestsCongestion {
    fn handle(&mut self, _now: Time, input: &Input) {
        self.has_data |= matches!(input, Input::Data { .. });
    }
    fn poll_timeout(&self) -> Option<Time> {
        None
    }
    fn poll_output(&mut self) -> Option<Output> {
        self.choice.take_if(|_| self.has_data).map(Output::Congestion)
    }
    fn needs(&self) -> Needs {
        Needs { data: true, ..Needs::NOTHING }
    }
    fn phase(&self) -> SizingPhase {
        SizingPhase::Open
    }
}

/// A path that loses one packet in a hundred, and a receiver that requests this congestion control.
fn lossy(choice: CongestionChoice, overrides: &[&str]) -> Outcome {
    let overrides = [&["path.loss=1%", "duration=20s"], overrides].concat();
    steered(
        &overrides,
        Box::new(move |_| Box::new(RequestsCongestion { choice: Some(choice), has_data: false })),
    )
}

#[test]
fn a_linux_sender_switches_to_the_requested_congestion_control() {
    let goodput = |choice| lossy(choice, &[]).transfers[0].goodput_bps / 1e6;
    // Mathis et al. 1997, windows growing by packets: 1448 B / 40 ms x sqrt(3 / (2 x 1 %)) are 3.5 Mbit/s for Reno and, at
    // such a short RTT, for CUBIC. BBR ignores the losses.
    for choice in [CongestionChoice::Own, CongestionChoice::Reno] {
        let mbit = goodput(choice);
        assert!(mbit < 2.0 * 3.5, "{choice}: {mbit}");
    }
    let bbr = goodput(CongestionChoice::Bbr);
    assert!(bbr > 0.8 * 20.0, "{bbr}");
}

#[test]
fn congestion_fixed_keeps_the_congestion_control() {
    for (key, changes) in [
        ("transfer.congestion_fixed=false", true),
        ("transfer.congestion_fixed=true", false),
        // ns-2's senders never switch.
        ("tcp.flavour=ns2", false),
    ] {
        let own = lossy(CongestionChoice::Own, &[key]);
        for choice in [CongestionChoice::Reno, CongestionChoice::Bbr] {
            assert_eq!(lossy(choice, &[key]) != own, changes, "{key} {choice}");
        }
    }
}

/// A wrapper that counts the out-of-order segments reported to its controller.
struct OutOfOrderCounter {
    controller: Box<dyn Controller + Send>,
    out_of_order: Arc<AtomicU64>,
}

impl Controller for OutOfOrderCounter {
    fn handle(&mut self, now: Time, input: &Input) {
        if let Input::OutOfOrder { segments } = input {
            self.out_of_order.fetch_add(*segments, Ordering::Relaxed);
        }
        self.controller.handle(now, input);
    }
    fn poll_timeout(&self) -> Option<Time> {
        self.controller.poll_timeout()
    }
    fn poll_output(&mut self) -> Option<Output> {
        self.controller.poll_output()
    }
    fn needs(&self) -> Needs {
        self.controller.needs()
    }
    fn phase(&self) -> SizingPhase {
        self.controller.phase()
    }
}

#[test]
fn the_simulator_reports_losses_to_rledbat_and_sobas_live() {
    for sizing in [Sizing::Rledbat, Sizing::SobasLive] {
        let simulate = |loss: &str| {
            let out_of_order = Arc::new(AtomicU64::new(0));
            let heard = Arc::clone(&out_of_order);
            let make: ControllerMaker = Box::new(move |setting| {
                let controller = sizing.controller(setting).unwrap();
                Box::new(OutOfOrderCounter { controller, out_of_order })
            });
            let outcome = steered(&[loss, "duration=20s", "path.buffer=60000pkt"], make);
            (heard.load(Ordering::Relaxed), outcome.transfers[0].retransmitted_packets)
        };
        // 20 s at 20 Mbit/s are 34,000 packets: the buffer does not overflow.
        assert_eq!(simulate("path.loss=0"), (0, 0), "{sizing}");
        let (heard, retransmitted) = simulate("path.loss=1%");
        // Fast retransmit needs three segments behind each lost one (RFC 5681 section 3.2). Two holes may share them, and a
        // timeout needs none.
        assert!(retransmitted > 10 && heard >= retransmitted, "{sizing}: {heard} {retransmitted}");
    }
}

/// The window at every sample.
#[derive(Default)]
struct Windows(Vec<u64>);

impl Recorder for Windows {
    fn interval(&self) -> Option<Duration> {
        Some(Duration::from_millis(5))
    }
    fn record(&mut self, sample: &Sample) {
        self.0.push(sample.window_bytes);
    }
}

#[test]
fn a_limited_transfer_never_advertises_more_than_kernel_would() {
    let windows = |sizing: &str| {
        let mut windows = Windows::default();
        // Reno's slow start ends only by losses; CUBIC's also ends at the queue of a transfer without a limit.
        let set = [&*format!("transfer.sizing={sizing}"), "transfer.congestion=reno"];
        simulate_recorded(PATH, &set, &mut windows);
        windows.0
    };
    // Without losses, a transfer without a limit is always ahead of a limited one, and so is the kernel's window, which
    // follows the arrivals.
    let kernel = windows("kernel");
    for sizing in ["sobas", "sobas:live", "rledbat"] {
        let limited = windows(sizing);
        assert_eq!(limited.len(), kernel.len());
        let wider = limited.iter().zip(&kernel).position(|(limited, kernel)| limited > kernel);
        assert_eq!(wider, None, "{sizing}");
    }
}

/// Emits one event that it requested BBR, when the first data arrive.
#[derive(Default)]
struct Reports {
    at: Option<Time>,
}

impl Controller for Reports {
    fn handle(&mut self, now: Time, _input: &Input) {
        self.at.get_or_insert(now);
    }
    fn poll_timeout(&self) -> Option<Time> {
        None
    }
    fn poll_output(&mut self) -> Option<Output> {
        let at = self.at.filter(|at| *at != Time::MAX)?;
        self.at = Some(Time::MAX);
        let kind = EventKind::Switched { to: CongestionChoice::Bbr };
        Some(Output::Event(SizingEvent { at, kind }))
    }
    fn needs(&self) -> Needs {
        Needs { data: true, ..Needs::NOTHING }
    }
    fn phase(&self) -> SizingPhase {
        SizingPhase::Open
    }
}

#[test]
fn a_sender_that_keeps_its_congestion_control_logs_no_switch() {
    let events = |overrides: &[&str]| {
        let outcome = steered(overrides, Box::new(|_| Box::new(Reports::default())));
        outcome.transfers[0].events.len()
    };
    assert_eq!(events(&[]), 1);
    assert_eq!(events(&["transfer.congestion_fixed=true"]), 0);
    assert_eq!(events(&["tcp.flavour=ns2"]), 0);
}
