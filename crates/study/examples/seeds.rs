//! x
use sweetspot_scenario::Scenario;
use sweetspot_study::{Workers, ns2, play_all};
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let text = std::fs::read_to_string(&a[1]).unwrap();
    let n: u64 = a[2].parse().unwrap();
    let _ = ns2::cases();
    let runs: Vec<Scenario> = (1..=n)
        .map(|s| {
            let mut o = a[3..].to_vec();
            o.push(format!("seed={s}"));
            Scenario::parse_with(&text, &o).unwrap()
        })
        .collect();
    let outs = play_all(&sweetspot_sim::Simulator, &runs, Workers::new(2)).unwrap();
    let mut g = vec![];
    for o in &outs {
        let t = &o.transfers[0];
        g.push(t.goodput_bps / 1e6);
        println!(
            "{:.3} loss_t {:.6} loss {:.6} q {:.1} to {} u {:.3} ub {:.3} rtt {:.1} win {}",
            t.goodput_bps / 1e6,
            t.loss_rate,
            o.bottleneck.loss_rate,
            o.bottleneck.queue_mean_packets,
            t.timeouts,
            o.bottleneck.utilisation,
            o.bottleneck.utilisation_before,
            t.rtt_mean_s * 1e3,
            t.window_final_bytes / 1000
        );
    }
    println!("mean {:.3}", g.iter().sum::<f64>() / g.len() as f64);
}
