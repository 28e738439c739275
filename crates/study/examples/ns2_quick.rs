//! x
use sweetspot_study::{Workers, ns2};
fn main() {
    let filter: Vec<String> = std::env::args().skip(1).collect();
    let cases: Vec<_> = ns2::cases()
        .unwrap()
        .into_iter()
        .filter(|c| {
            filter.iter().any(|f| {
                let key = format!(
                    "{}/{}/{}/{}/{}",
                    c.setting.cross,
                    c.setting.flavour,
                    c.setting.congestion,
                    c.setting.queue,
                    c.setting.reverse
                );
                key.starts_with(f.as_str())
            })
        })
        .collect();
    let out = ns2::compare(&sweetspot_sim::Simulator, &cases, Workers::new(2)).unwrap();
    for c in &out {
        let s = &c.setting;
        println!(
            "{:20} {:5} {:8} {:7} {:6} B={:5} S={:5} good {:7.3} {:7.3} {:+6.1}%  loss {:.5} {:.5} q {:7.1} {:7.1} rtt {:7.2} {:7.2} u0 {:.3} {:.3}",
            s.cross,
            s.flavour,
            s.congestion,
            s.queue,
            s.reverse,
            s.buffer,
            c.window,
            c.theirs.goodput_mbps,
            c.ours.goodput_mbps,
            c.deviation() * 100.0,
            c.theirs.loss,
            c.ours.loss,
            c.theirs.queue_packets,
            c.ours.queue_packets,
            c.theirs.rtt_ms,
            c.ours.rtt_ms,
            c.theirs.utilisation_before,
            c.ours.utilisation_before
        );
    }
    for m in ns2::maxima(&out) {
        println!(
            "MAX {} {} {} {} {} B={}: {:.2}@{} ours {:.2}@{} ({:+.1} %, {:+.1} %)",
            m.setting.cross,
            m.setting.flavour,
            m.setting.congestion,
            m.setting.queue,
            m.setting.reverse,
            m.setting.buffer,
            m.theirs.0,
            m.theirs.1,
            m.ours.0,
            m.ours.1,
            (m.ours.0 / m.theirs.0 - 1.0) * 100.0,
            (m.ours.1 as f64 / m.theirs.1 as f64 - 1.0) * 100.0
        );
    }
    println!("{:?}", ns2::spread(&out, |_| true));
}
