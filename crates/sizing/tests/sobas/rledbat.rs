//! Laws of rLEDBAT (RFC 9840) on the same scripted paths: 100 Mbit/s of payload, 40 ms, a buffer
//! of 100 ms.

use crate::fluid::{Fluid, Run, simulate};
use sweetspot_sizing::{EventKind, Reason, Sizing};
use sweetspot_units::Bytes;

const BDP: f64 = 500e3;

fn path() -> Fluid {
    Fluid { rtt: |_| 0.04, buffer: 1.25e6, udp_passes: false, paces: false, ..Fluid::clean() }
}

/// Whether the transfer reports that it yields to the queue of cross traffic.
fn yields(kind: &EventKind) -> bool {
    matches!(kind, EventKind::Entered { reason: Reason::CrossTrafficQueue, .. })
}

fn run(fluid: &Fluid, seconds: f64) -> Run {
    simulate(Sizing::Rledbat, 6_291_456, fluid, seconds)
}

#[test]
fn an_idle_path_is_used_within_the_60_ms_target() {
    let run = run(&path(), 60.0);
    // Slow start doubles beyond the buffer's size before it sees the queue; later nothing is lost.
    assert!(run.last_drop <= 2.0, "{}", run.last_drop);
    // A slowdown lasts two round trips and the way back; then nine times that duration passes.
    // Slowdowns take at most a tenth of the time.
    assert!(run.goodput(5.0, 60.0) >= 0.88 * 100e6, "{}", run.goodput(5.0, 60.0));
    // 60 ms of 100 Mbit/s are 1.5 BDP.
    assert!(run.queue(5.0, 60.0) <= 1.5 * BDP, "{}", run.queue(5.0, 60.0));
    assert!(!run.has_seen(yields), "its own queue is not cross traffic's");
}

#[test]
fn queue_building_cross_traffic_gets_the_path() {
    let cross = |drain: f64| if drain < 0.09 { 110e6 } else { 95e6 };
    let run = run(&Fluid { cross, ..path() }, 30.0);
    assert!(run.goodput(10.0, 30.0) <= 0.1 * 100e6, "{}", run.goodput(10.0, 30.0));
    assert!(run.has_seen(yields));
}

#[test]
fn the_window_never_exceeds_a_host_limit_below_two_segments() {
    for max in [1, 1448, 2896] {
        let run = simulate(Sizing::Rledbat, max, &path(), 5.0);
        assert!(run.window <= Some(Bytes::new(max)), "{max}: {:?}", run.window);
    }
}
