//! Jain, Prasad, Dovrolis: "The TCP Bandwidth-Delay Product revisited".

use sweetspot_theory::path::elephants::Elephants;
use sweetspot_theory::path::saturation::{Regime, sweet_spot, throughput};
use sweetspot_theory::path::{Path, mice, unresponsive};
use sweetspot_theory::reno::pftk::Flow;
use sweetspot_units::{Bytes, Duration, Probability, Rate};

const PACKET: Bytes = Bytes::new(1000);
const RTT: Duration = Duration::from_millis(100);

fn mbit(n: u64) -> Rate {
    Rate::from_mbit_per_second(n)
}

fn elephants(buffer_packets: u64) -> Elephants {
    Elephants::new(mbit(50), mbit(15), RTT, RTT, PACKET * buffer_packets).unwrap()
}

#[test]
fn section_5_has_a_bdp_of_625_packets() {
    assert_eq!(Path::new(mbit(50), RTT, Bytes::ZERO).unwrap().bdp(), PACKET * 625);
}

#[test]
fn figure_1s_windows_lie_in_and_past_the_sweet_spot() {
    // 100 Mbit/s with a BDP of 436 kB: T_m = 436,000 * 8 / 1e8 = 34.88 ms. S = 470 kB gave 91.3
    // Mbit/s without a loss, 950 kB 61.7 Mbit/s with bursts of losses. The paper does not print
    // B_t; any value between 34 and 514 kB explains both.
    let rtt = Duration::from_micros(34_880);
    for buffer in [34, 200, 513] {
        let path = Path::new(mbit(100), rtt, Bytes::new(buffer * 1000)).unwrap();
        assert_eq!(sweet_spot(&path).low, Bytes::new(436_000));
        let regime = |kb: u64| throughput(&path, Bytes::new(kb * 1000)).unwrap().regime;
        assert_eq!((regime(470), regime(950)), (Regime::Saturated, Regime::CongestionLimited));
    }
}

#[test]
fn figure_3_text_has_an_optimum_of_191_packets() {
    let path = unresponsive::path(mbit(50), mbit(35), Duration::from_millis(102), PACKET * 1250);
    assert_eq!(sweet_spot(&path.unwrap()).low.get() / 1000, 191);
}

#[test]
fn figure_4_text_has_27_32_and_38_mbit_from_equation_8() {
    // 26.68, 32.50 and 38.33 Mbit/s: the paper prints 27, 32 and 38; it truncates the
    // second.
    let rates = [313, 625, 1250].map(|b| elephants(b).optimum().rate.as_f64() / 1e6);
    for (got, exact) in rates.into_iter().zip([26.68, 32.50, 38.33]) {
        assert!((got - exact).abs() < 0.005, "{got}");
    }
    for (got, printed) in rates.into_iter().zip([27.0, 32.0, 38.0]) {
        assert!((got - printed).abs() <= 0.501, "{got} {printed}");
    }
}

#[test]
fn figures_4_and_5_stay_below_the_fluid_models_bound() {
    // Simulated with elephants: 24, 29, 36 Mbit/s; with mice: 14.5, 16, 19.5.
    let simulated = [(313, 24.0, 14.5), (625, 29.0, 16.0), (1250, 36.0, 19.5)];
    for (buffer, against_elephants, against_mice) in simulated {
        let bounds = mice::bounds(&elephants(buffer));
        let high = bounds.high.as_f64() / 1e6;
        assert!(against_elephants < high && against_elephants > 0.88 * high);
        // The smallest buffer overflows before the link is full: at most 0.5 Mbit/s below A.
        assert!(against_mice >= bounds.low.as_f64() / 1e6 - 0.5 && against_mice < high);
    }
}

#[test]
fn figure_6_text_has_2_4_mbit_between_the_two_ack_rates() {
    // Loss and RTT are printed for the three buffers; the throughput read from the figure is 2.4
    // Mbit/s. The square-root formula gives 2.94, 2.96, 2.63 with an ACK for each segment (b = 1)
    // and 2.08, 2.09, 1.86 with one for two (b = 2). The paper gives neither b nor T_0.
    for (percent, rtt_ms) in [(0.08, 118), (0.05, 148), (0.03, 215)] {
        let loss = Probability::new(percent / 100.0).unwrap();
        let rtt = Duration::from_millis(rtt_ms);
        let flow = Flow::new(PACKET, rtt, Duration::from_secs(1), loss).unwrap();
        let each = flow.with_segments_per_ack(1).unwrap();
        let (low, high) = (flow.square_root().as_f64(), each.square_root().as_f64());
        assert!(low < 2.4e6 && 2.4e6 < high, "{low} {high}");
    }
}

#[test]
fn figure_10s_window_lies_in_the_sweet_spot() {
    // 100 Mbit/s, T_e = 37 ms: C T_e = 462.5 kB. SOBAS chose 559 kB and lost nothing, so the path
    // buffered at least 96.5 kB. 450 kB is below C T_e: 450e3 * 8 / 0.037 = 97.3 Mbit/s on the
    // wire, compared with 91.3 of goodput.
    let path = Path::new(mbit(100), Duration::from_millis(37), Bytes::new(96_500)).unwrap();
    let at = |kb: u64| throughput(&path, Bytes::new(kb * 1000)).unwrap();
    assert_eq!(at(559).regime, Regime::Saturated);
    assert_eq!(at(450).regime, Regime::BufferLimited);
    assert_eq!(at(450).rate.bits_per_second() / 100_000, 972);
    assert_eq!(at(950).regime, Regime::CongestionLimited);
}

#[test]
fn section_4_leaves_75_percent_without_a_buffer() {
    let path = Path::new(mbit(50), RTT, Bytes::ZERO).unwrap();
    assert_eq!(throughput(&path, Bytes::MAX).unwrap().rate, mbit(50).scaled(0.75));
}
