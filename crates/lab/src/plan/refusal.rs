use sweetspot_scenario::{Cross, Scenario, Tcp, TrafficKind};
use sweetspot_sizing::{ControllerConfig, KnownPath};
use sweetspot_units::{Bytes, Duration};

use super::{every_tcp, kernel_name, shape};

/// Each measured transfer has TLS, a file and some fifteen threads.
const MAX_TRANSFERS: usize = 64;
/// Each connection uses two descriptors, one per end, and each mouse keeps a port busy.
const MAX_LAB_FLOWS: u64 = 10_000;
/// How long a receiver waits for a silent sender (docs/protocol.md).
const PATIENCE: Duration = Duration::from_secs(30);

/// The reasons why this machine cannot run `scenario` accurately, with feasible alternatives; empty if it can. `controls`
/// are the congestion controls of its kernel.
pub(crate) fn refusals(scenario: &Scenario, controls: &[String]) -> Vec<String> {
    let mut reasons = Vec::new();
    path(scenario, &mut reasons);
    habits(scenario, &mut reasons);
    traffic(scenario, controls, &mut reasons);
    reasons
}

fn path(scenario: &Scenario, reasons: &mut Vec<String>) {
    let path = &scenario.path;
    let hop = path.narrow();
    // 576: every IPv4 host accepts this (RFC 791); 9000: the common jumbo frame.
    if !(576..=9000).contains(&path.packet.get()) {
        reasons.push(format!(
            "no kernel sends packets of {}; path.packet must be between 576B and 9000B",
            path.packet
        ));
    }
    if path.packet_spread > Bytes::ZERO {
        reasons.push("a kernel's full segments have one size; leave packet_spread out".to_owned());
    }
    if path.access_rate < hop.rate {
        reasons.push(format!(
            "its access links have no limit; path.access_rate must be at least {}",
            hop.rate
        ));
    }
}

fn habits(scenario: &Scenario, reasons: &mut Vec<String>) {
    let differ = |of: fn(&Tcp) -> bool| {
        let mut all = every_tcp(scenario).map(of);
        let first = all.next();
        all.any(|other| Some(other) != first)
    };
    let mut one_for_all = |key: &str, differ: bool| {
        if differ {
            reasons.push(format!("a kernel has one {key} for all flows; set it in [tcp] alone"));
        }
    };
    one_for_all("timestamps", differ(|tcp| tcp.timestamps));
    one_for_all("ecn", differ(|tcp| tcp.ecn));
    one_for_all("slow_start_restart", differ(|tcp| tcp.slow_start_restart));
    if every_tcp(scenario).any(|tcp| tcp.pacing) {
        reasons.push(
            "a kernel's congestion control decides on pacing; leave pacing out, or use bbr".into(),
        );
    }
}

/// The congestion controls needed by the flows of `scenario`, by the kernel's names.
pub(crate) fn congestion_controls(scenario: &Scenario) -> Vec<&'static str> {
    let transfers = scenario.transfers.iter().map(|t| t.congestion);
    let cross = scenario.cross.iter().filter(|c| !is_udp(c)).map(|c| c.congestion);
    let mut names: Vec<&str> = transfers.chain(cross).map(kernel_name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn traffic(scenario: &Scenario, controls: &[String], reasons: &mut Vec<String>) {
    let is_missing = |name: &&str| !controls.iter().any(|have| have == name);
    for name in congestion_controls(scenario).into_iter().filter(is_missing) {
        let have = controls.join(", ");
        reasons.push(format!(
            "this kernel has no congestion control {name} (it has {have}); sudo modprobe tcp_{name}"
        ));
    }
    if scenario.transfers.len() > MAX_TRANSFERS {
        reasons.push(format!(
            "{} transfers are more than the {MAX_TRANSFERS} that it measures at once; make some of them elephants in [[cross]]",
            scenario.transfers.len()
        ));
    }
    let flows: u64 = scenario.cross.iter().map(|cross| shape(&cross.kind).0).sum();
    if flows > MAX_LAB_FLOWS {
        reasons
            .push(format!("{flows} flows are more than the {MAX_LAB_FLOWS} that it runs at once"));
    }
    if scenario.cross.iter().any(|cross| cross.inputs.is_some()) {
        reasons.push("it has no shared input links; leave inputs out".to_owned());
    }
    let pauses = scenario.transfers.iter().flat_map(|transfer| &transfer.writer.pauses);
    if let Some(pause) = pauses.max_by_key(|pause| pause.length).filter(|p| p.length >= PATIENCE) {
        reasons.push(format!(
            "its receivers give up after {PATIENCE} of silence; writer pauses for {}, which must be shorter",
            pause.length
        ));
    }
    if scenario.send_pool.is_some() {
        reasons
            .push("a kernel gives each socket a buffer of its own; leave send_pool out".to_owned());
    }
    if scenario.transfers.iter().any(|transfer| transfer.follows) {
        reasons.push("its transfers are independent of each other; leave follows out".to_owned());
    }
    let config = ControllerConfig {
        mss: scenario.path.packet,
        packet: scenario.path.packet,
        max_window: Bytes::MAX,
        size: None,
        path: Some(KnownPath::new(scenario.path.narrow().rate, scenario.path.rtt)),
    };
    for transfer in &scenario.transfers {
        if let Err(error) = transfer.sizing.controller(&config) {
            reasons.push(error.to_string());
        }
    }
}

fn is_udp(cross: &Cross) -> bool {
    matches!(cross.kind, TrafficKind::Pareto { .. } | TrafficKind::Poisson { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused_with(overrides: &[&str]) -> String {
        let text = "duration = \"10s\"\n[path]\nrate = \"50Mbit/s\"\nrtt = \"60ms\"\nbuffer = \"100pkt\"\n[[transfer]]\n";
        let overrides: Vec<String> = overrides.iter().map(|o| (*o).to_owned()).collect();
        let scenario = Scenario::parse_with(text, &overrides).unwrap();
        refusals(&scenario, &["reno".to_owned(), "cubic".to_owned()]).join("; ")
    }

    #[test]
    fn a_plain_scenario_is_accepted() {
        assert_eq!(refused_with(&[]), "");
        assert_eq!(refused_with(&["transfer.0.sizing=sobas", "transfer.0.congestion=cubic"]), "");
    }

    #[test]
    fn refusals_name_the_supported_alternatives() {
        for (set, reason) in [
            ("path.queue=red", ""),
            ("path.queue=pie", ""),
            ("path.change=[{at=\"1s\",delay=\"1ms\"}]", ""),
            ("path.packet=100B", "between 576B and 9000B"),
            ("path.packet_spread=100B", "leave packet_spread out"),
            ("path.access_rate=10Mbit/s", "path.access_rate must be at least 50 Mbit/s"),
            ("tcp.ecn=true", ""),
            ("transfer.0.timestamps=true", ""),
            ("transfer.0.congestion=vegas", "it has reno, cubic"),
            ("transfer.0.count=65", "more than the 64"),
            ("transfer.0.sizing=bdp5", "bdp5 needs"),
            ("transfer.0.reader=pause=1s+60s", ""),
            ("transfer.0.writer=rate=1Mbit/s,pause=1s+29s", ""),
            ("transfer.0.writer=pause=1s+30s", "must be shorter"),
            ("send_pool=1MB", "leave send_pool out"),
            ("transfer=[{size=\"1MB\"},{follows=true}]", "leave follows out"),
        ] {
            let words = refused_with(&[set]);
            assert!(
                words.contains(reason) && words.is_empty() == reason.is_empty(),
                "{set}: {words}"
            );
        }
    }
}
