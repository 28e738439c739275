//! Laws of the improved SOBAS where others share the path: 20 transfers of 22 packets of 1000 B and
//! 100 ms (Figure 4 of the paper) on 50 Mbit/s, 35.2 Mbit/s of them while no queue stands. Eq. (6):
//! behind a queue of Q they fall to 35.2 / (1 + Q / 100 ms), and eq. (7) leaves us the rest.

use crate::fluid::{Fluid, MSS, PACKET, Run, drive};
use sweetspot_sizing::{EventKind, Setting, Sizing};
use sweetspot_units::Bytes;

/// C T_m = 50 Mbit/s x 100 ms.
const BDP: f64 = 625e3;

fn run(buffer: f64, seconds: f64) -> Run {
    let setting = Setting {
        mss: Bytes::new(MSS as u64),
        packet: Bytes::new(PACKET as u64),
        max_window: Bytes::new(33_554_432),
        path: None,
    };
    let fluid = Fluid {
        rate: |_| 50e6,
        buffer,
        cross: |drain| 20.0 * 22e3 * 8.0 / (0.1 + drain),
        ..Fluid::clean()
    };
    drive(&mut *Sizing::Sobas.controller(&setting).unwrap(), &fluid, seconds)
}

#[test]
fn slow_start_brakes_before_the_first_limit_overflows() {
    // The first limit is what the trains saw, 51.8 Mbit/s x 100 ms. Behind a queue of q x 100 ms we
    // get (50 - 35.2 / (1 + q)) Mbit/s, which takes a window of (50 (1 + q) - 35.2) Mbit/s x 100 ms:
    // the limit would be reached at q = 0.74, and the buffer of 0.7 BDP overflow before.
    assert_eq!(run(0.7 * BDP, 5.0).dropped_bytes, 0.0);
}

#[test]
fn however_deep_the_buffer_the_queue_is_no_longer_than_a_round_trip() {
    let run = run(3.0 * BDP, 180.0);
    assert_eq!(run.dropped_bytes, 0.0);
    assert!(run.queue(120.0, 180.0) <= 1.1 * BDP, "{}", run.queue(120.0, 180.0));
    // Eq. (7) with Q = 100 ms: 50 - 35.2 / 2 = 32.4 Mbit/s.
    assert!(run.goodput(120.0, 180.0) >= 0.95 * 32.4e6, "{}", run.goodput(120.0, 180.0));
}

#[test]
fn a_buffer_that_overflowed_does_so_once_in_minutes() {
    let run = run(0.6 * BDP, 180.0);
    let overflows = |event: &&(f64, EventKind)| {
        event.0 > 5.0 && matches!(event.1, EventKind::Overflowed { .. })
    };
    assert_eq!(run.events.iter().filter(overflows).count(), 1, "{}", run.last_drop);
    // Eq. (8) with B / C = 60 ms: 50 - 35.2 / 1.6 = 28.0 Mbit/s at the brim, at a window of
    // 28 Mbit/s x 160 ms = 560 kB. 0.85 of it, 476 kB, is reached at 50 (1 + q) - 35.2 = 38.1, so
    // q = 0.47, and brings 50 - 35.2 / 1.47 = 26.0 Mbit/s.
    assert!(run.goodput(150.0, 180.0) >= 0.95 * 26.0e6, "{}", run.goodput(150.0, 180.0));
}
