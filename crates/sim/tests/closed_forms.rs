//! Without cross traffic, R(S) is what equations (4) and (5) of the SOBAS paper say.

mod common;

use common::{DUMBBELL, goodput};

/// C, Mbit/s, and C x T_m in packets.
const C: f64 = 50.0;
const BDP: f64 = 625.0;

fn simulated(window: u64, buffer: u64, congestion: &str) -> f64 {
    goodput(
        DUMBBELL,
        &[
            &format!("transfer.0.sizing=fixed:{window}pkt"),
            &format!("path.buffer={buffer}pkt"),
            &format!("transfer.0.congestion={congestion}"),
            "warmup=60s",
            "duration=240s",
        ],
    )
}

#[test]
fn below_and_inside_the_sweet_spot_throughput_is_that_of_equation_4() {
    for buffer in [100, 313, 625, 1250] {
        for window in [313, 500, 600, 640, 625 + buffer / 2, 625 + buffer] {
            // R(S) = S / T_m up to C T_m, then C up to C T_m + B_t.
            let expected = C * (window as f64 / BDP).min(1.0);
            let found = simulated(window, buffer, "reno");
            let error = found / expected - 1.0;
            assert!(error.abs() < 0.02, "S={window} B={buffer}: {found}, expected {expected}");
        }
    }
}

#[test]
fn well_above_the_sweet_spot_throughput_is_the_sawtooths() {
    for buffer in [100u64, 313, 625, 1250] {
        let b = buffer as f64;
        // Equation (4), third case, below C T_m of buffer; equation (5) above.
        let sum = BDP + b;
        let expected = if b < BDP { 0.75 * C * sum * sum / (sum * sum - b * BDP) } else { C };
        for congestion in ["newreno", "sack"] {
            let found = simulated(2 * (625 + buffer), buffer, congestion);
            let error = found / expected - 1.0;
            assert!(error.abs() < 0.10, "{congestion} B={buffer}: {found}, expected {expected}");
        }
    }
}

#[test]
fn just_above_the_sweet_spot_a_window_limited_reno_falls_into_a_hole() {
    // ns-2.35 with B_t = 313: 36.74 Mbit/s at S = C T_m + B_t + 1 = 939 and 47.90 at 4000. The
    // window stops new data during recovery, half of it then leaves in one burst, which
    // overflows the buffer again.
    let (edge, hole, far) =
        (simulated(938, 313, "reno"), simulated(939, 313, "reno"), simulated(4000, 313, "reno"));
    assert!((edge - 50.0).abs() < 0.5, "{edge}");
    assert!((hole / 36.74 - 1.0).abs() < 0.02, "{hole}");
    assert!((far / 47.90 - 1.0).abs() < 0.02, "{far}");
}
