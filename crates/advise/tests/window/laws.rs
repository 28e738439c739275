//! Properties of the window advice on random paths.

use proptest::prelude::*;
use sweetspot_advise::AdviceError;
use sweetspot_advise::window::{CrossShare, TriedWindow, TriedWindows, WindowQuestion, advise};
use sweetspot_units::{Bytes, Duration, Probability, Rate};

use crate::simulation::tried;
use crate::{INITIAL_WINDOW, question};

/// Cross traffic and random loss on a path, neither of them certain.
#[derive(Debug, Clone, Copy)]
struct Disturbance {
    cross: Option<CrossShare>,
    loss: Option<Probability>,
}

fn disturbances() -> impl Strategy<Value = Disturbance> {
    let cross = proptest::option::of(("udp|elephants|mice", 1_u32..95));
    let loss = proptest::option::of(1e-6..0.1);
    (cross, loss).prop_map(|(cross, loss): (Option<(String, u32)>, Option<f64>)| Disturbance {
        cross: cross.map(|(kind, percent)| format!("{kind}:{percent}%").parse().unwrap()),
        loss: loss.map(|loss| loss.to_string().parse().unwrap()),
    })
}

/// A path with this disturbance and a buffer of `buffer` bytes, or an unknown one.
fn path(
    rate: Rate,
    rtt: Duration,
    buffer: Option<u64>,
    Disturbance { cross, loss }: Disturbance,
) -> WindowQuestion {
    let buffer = buffer.map(Bytes::new);
    WindowQuestion { rate, rtt, buffer, cross, loss, ..question("1Mbit/s", "1ms") }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// On any path, a window to hold or to simulate is at least ten packets.
    #[test]
    fn no_window_is_smaller_than_the_initial_one(
        kbit in 100_u64..1_000_000,
        ms in 1_u64..500,
        buffer in proptest::option::of(1000_u64..10_000_000),
        disturbance in disturbances(),
    ) {
        let (rate, rtt) = (Rate::from_bits_per_second(kbit * 1000), Duration::from_millis(ms));
        let q = path(rate, rtt, buffer, disturbance);
        match advise(&q) {
            Err(AdviceError::NoWindowHelps { .. }) => {}
            Err(other) => prop_assert!(false, "{}", other),
            Ok(advice) => {
                let tried = advice.windows_to_try().unwrap_or_default();
                let all = tried.iter().copied().chain(advice.recommended.window);
                prop_assert!(all.min() >= Some(INITIAL_WINDOW));
                prop_assert!(tried.windows(2).all(|pair| pair[0] < pair[1]));
                let text = advice.text(false, 80);
                prop_assert!(text.lines().all(|line| line.chars().count() <= 80), "{}", text);
            }
        }
    }

    /// A faster or longer path never needs a smaller window in total. Under loss this holds to 1 or 2 %, and to one packet.
    #[test]
    fn law_the_window_grows_with_rate_and_rtt(
        (kbit, ms) in (1000_u64..100_000_000, 1_u64..1000),
        (faster, longer) in (1.0..8.0, 1.0..8.0),
        buffer in proptest::option::of(1500_u64..100_000_000),
        disturbance in disturbances(),
    ) {
        let of = |faster: f64, longer: f64| {
            let rate = Rate::from_f64(kbit as f64 * 1000.0 * faster);
            let rtt = Duration::from_secs_f64(ms as f64 * 1e-3 * longer);
            match advise(&path(rate, rtt, buffer, disturbance)) {
                Ok(advice) => advice.recommended.window.unwrap().as_f64() * advice.connections as f64,
                Err(_) => 0.0,
            }
        };
        let less = of(1.0, 1.0);
        let (slack, bytes) = if disturbance.loss.is_some() { (0.95, 1448.0) } else { (0.999_999, 8.0) };
        for more in [of(faster, 1.0), of(1.0, longer)] {
            prop_assert!(more >= slack * less - bytes, "{} {}", less, more);
        }
    }

    /// The text, its table and the JSON agree on window, rate, queue and settings.
    #[test]
    fn law_text_and_json_say_the_same(
        (kbit, ms) in (1000_u64..100_000_000, 1_u64..1000),
        buffer in proptest::option::of(1500_u64..100_000_000),
        disturbance in disturbances(),
    ) {
        let (rate, rtt) = (Rate::from_bits_per_second(kbit * 1000), Duration::from_millis(ms));
        let q = path(rate, rtt, buffer, disturbance);
        let Ok(advice) = advise(&q) else { return Ok(()) };
        let mut all = vec![advice.clone()];
        if let Some(windows) = advice.windows_to_try() {
            let of = |(i, window): (usize, &Bytes)| TriedWindow { window: *window, ..tried(1, 1000 + 7 * i as u64, i > 2) };
            let windows = windows.iter().enumerate().map(of).collect();
            all.push(advice.decided_by(TriedWindows { windows, seeds: 8, ..TriedWindows::default() }).unwrap());
        }
        for advice in all {
            let (json, text) = (advice.json(), advice.text(true, 80));
            let number = |value: &serde_json::Value| value.as_u64();
            let folded = text.replace("\n          ", " ");
            let line = |name: &str| folded.lines().find(|line| line.starts_with(name)).unwrap_or_default();
            let window = Bytes::new(number(&json["recommended_bytes"]).unwrap());
            prop_assert!(text.starts_with(&format!("window    {window} ")), "{}", text);
            let rate = number(&json["expected_bps"]["recommended"]).map(Rate::from_bits_per_second);
            let rate = rate.map_or("not known".to_owned(), |rate| rate.to_string());
            prop_assert!(line("rate ").replace("at most ", "").starts_with(&format!("rate      {rate}")), "{} {}", rate, text);
            let settings = &json["settings"];
            let wmem = format!("net.ipv4.tcp_wmem[2] >= {} at the sender", settings["tcp_wmem_max_bytes"]);
            prop_assert!(line("settings").contains(&wmem), "{}", text);
            let receiver = ["tcp_rmem_max_bytes", "so_rcvbuf_bytes"].map(|name| settings[name].to_string());
            prop_assert!(receiver.iter().any(|n| line("settings").contains(&format!(" {n} at the receiver"))), "{}", text);
            let row = |line: &&str| line.starts_with("  hold ") || line.contains(" hold");
            let rows: Vec<&str> = text.lines().skip(5).filter(row).collect();
            let in_table = rows.iter().any(|row| row.contains(&window.get().to_string()) && row.contains(&rate));
            prop_assert!(in_table, "{}", text);
            prop_assert!(text.lines().all(|line| line.chars().count() <= 80), "{}", text);
        }
    }
}
