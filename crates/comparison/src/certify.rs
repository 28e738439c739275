use sweetspot_emulator as emulator;
use sweetspot_report as report;
use sweetspot_units::Duration;

/// The emulator's certificate in the form used in reports; the worse direction counts.
pub fn certificate(of: &emulator::Certificate) -> report::Certificate {
    let worse = |pick: fn(&emulator::LatenessCertificate) -> Option<Duration>| {
        pick(&of.up.lateness).max(pick(&of.down.lateness)).unwrap_or(Duration::ZERO)
    };
    let drops = [("up", &of.up), ("down", &of.down)].into_iter().flat_map(|(side, direction)| {
        [
            (format!("{side}: buffer full"), direction.dropped_by_buffer),
            (format!("{side}: random loss"), direction.dropped_at_random),
            (format!("{side}: this machine"), direction.lost_by_machine.total()),
        ]
    });
    report::Certificate {
        trust: of.verdict.trust,
        reasons: of.verdict.reasons.clone(),
        lateness_p50: worse(|l| l.p50),
        lateness_p99: worse(|l| l.p99),
        lateness_max: worse(|l| l.max),
        drops: drops.filter(|(_, packets)| *packets > 0).collect(),
        text: of.to_string(),
        // A structure of numbers and text can always be serialised.
        emulator: serde_json::to_value(of).unwrap_or_default(),
    }
}
