//! Prints an outcome as text.

use sweetspot_program::print::{self, spaced, wrapped};
use sweetspot_report::{rise_in_words, titled};
use sweetspot_scenario::{
    ControllerEvent, CrossOutcome, Derivation, Outcome, Scenario, Transfer, TransferOutcome,
};
use sweetspot_sizing::SizingPhase;
use sweetspot_statistics::Sorted;
use sweetspot_units::{Bytes, Duration, Rate, Significant, grouped};

/// Prints the outcome.
pub fn print_for_people(scenario: &Scenario, outcome: &Outcome) {
    wrapped(&heading(scenario, outcome), "");
    let all = &outcome.transfers;
    let shown = if all.len() > MAX_DETAILED { MAX_DETAILED } else { all.len() };
    for (i, t) in all.iter().enumerate().take(shown) {
        match why_nothing_moved(scenario, i, t) {
            Some(why) => {
                wrapped(&format!("transfer {i}: nothing measured, {why} [{}]", t.sizing), "");
            }
            None => print_transfer(i, t, scenario.transfers.get(i).and_then(|t| t.size)),
        }
        print_events(&t.events, scenario.transfers.get(i).map_or(Duration::ZERO, begins));
    }
    if shown < all.len() {
        wrapped(&format!("{} more transfers: --json and --out have each", all.len() - shown), "");
    }
    if let Some(line) = all_together(all) {
        wrapped(&line, "");
    }
    for (i, c) in outcome.cross.iter().enumerate() {
        let loss = share(c.loss_rate);
        let rates = by_direction(c);
        wrapped(&format!("cross {i} ({}): goodput {rates}, loss {loss}", c.kind), "");
    }
    let b = &outcome.bottleneck;
    // Closed forms count bytes; the other engines count packets, both data and ACKs.
    let counted = match outcome.derivation {
        Some(_) => format!("packets of {}", scenario.path.packet),
        None => "packets, ACKs included".to_owned(),
    };
    let bottleneck = format!(
        "bottleneck: {:.1} % used{}, loss {}, mean queueing delay {}, mean queue {:.1} \
         {counted} (max {})",
        b.utilisation * 100.0,
        before(scenario, outcome),
        share(b.loss_rate),
        Duration::from_secs_f64(b.queue_delay_mean_s),
        b.queue_mean_packets,
        b.queue_max_packets,
    );
    wrapped(&bottleneck, "");
    match &outcome.derivation {
        Some(derivation) => print_derivation(derivation),
        None if print::is_quiet() => {}
        None => {
            // Only the simulator counts events.
            let events = match outcome.events {
                0 => String::new(),
                events => format!("{} events, ", grouped(events)),
            };
            let forwarded = grouped(outcome.packets_forwarded);
            // The lab runs in real time.
            let how = if outcome.engine == "lab" { "run for" } else { "computed in" };
            wrapped(
                &format!("{events}{forwarded} packets forwarded, {how} {:.3} s", outcome.wall_s),
                "",
            );
        }
    }
}

/// The title, the engine with its seed, and the time measured; closed forms have no time.
fn heading(scenario: &Scenario, outcome: &Outcome) -> String {
    let title = titled(&outcome.scenario);
    let (from, to) = (scenario.warmup, scenario.warmup + scenario.duration);
    let measured = match outcome.derivation {
        Some(_) => String::new(),
        None => format!(", measured from {from} to {to}"),
    };
    format!("{title} ({} engine, seed {}{measured})", outcome.engine, outcome.seed)
}

/// The earliest start of `transfer`; the start of a transfer that follows another is unknown.
fn begins(transfer: &Transfer) -> Duration {
    if transfer.follows { Duration::ZERO } else { transfer.start }
}

/// The number of transfers up to which each has its own line, with lines for its events.
const MAX_DETAILED: usize = 20;

/// The total goodput of several transfers; `None` for a single one.
fn all_together(all: &[TransferOutcome]) -> Option<String> {
    let rates: Sorted = all.iter().map(|transfer| transfer.goodput_bps).collect();
    let [low, median, high] = rates.quantiles([0.0, 0.5, 1.0])?.map(Rate::from_f64);
    let sum = Rate::from_f64(rates.iter().sum());
    (all.len() > 1).then(|| {
        format!("all {} transfers: {sum}; each {low} to {high}, median {median}", all.len())
    })
}

/// Prints the events of a transfer that starts at `start`.
fn print_events(events: &[ControllerEvent], start: Duration) {
    for line in event_lines(events, start) {
        spaced(&line);
    }
}

/// One line per event; consecutive similar events share a line with their windows and their number. A window set before the
/// transfer starts takes effect at the start.
fn event_lines(events: &[ControllerEvent], start: Duration) -> Vec<String> {
    let is_alike = |a: &ControllerEvent, b: &ControllerEvent| {
        a.kind == b.kind && a.reason == b.reason && a.congestion_to == b.congestion_to
    };
    let line = |same: &[ControllerEvent]| {
        let (first, last) = same.first().zip(same.last())?;
        let congestion = match first.congestion_to.as_deref() {
            Some("own") => "  to the sender's own congestion control".to_owned(),
            Some(other) => format!("  to {other}"),
            None => String::new(),
        };
        let set = || windows(same).or_else(|| measured(last));
        let (kind, gap, window) = match same.len() {
            _ if rises(same) => {
                let windows = same.iter().filter_map(|event| event.window_bytes);
                let windows: Vec<f64> = windows.map(|window| window as f64).collect();
                ("raised".to_owned(), "  ", Some(rise_in_words(&windows, last.at_s)))
            }
            1 => (first.kind.clone(), "  ", set()),
            count => {
                (format!("{} {count} times until {:.3} s", first.kind, last.at_s), ", ", set())
            }
        };
        let window = window.map_or(String::new(), |words| format!("{gap}{words}"));
        let reason = first.reason.as_ref().map_or(String::new(), |reason| format!("  {reason}"));
        let at_s = first.at_s.max(start.as_secs_f64());
        Some(format!("  {at_s:8.3} s  {kind}{congestion}{window}{reason}"))
    };
    events.chunk_by(is_alike).filter_map(line).collect()
}

/// Whether several events only raise the window step by step, as a kernel's autotuning does, without limiting anything.
fn rises(events: &[ControllerEvent]) -> bool {
    let windows = || events.iter().map(|event| event.window_bytes);
    let is_step = |(before, after)| matches!((before, after), (Some(b), Some(a)) if b <= a);
    events.len() > 1
        && windows().zip(windows().skip(1)).all(is_step)
        && windows().next() < windows().next_back()
}

/// The measurement reported by an event without a window.
fn measured(event: &ControllerEvent) -> Option<String> {
    let rate = event.rate_bps.map(|bps| Rate::from_f64(bps).to_string());
    let rtt = event.rtt_s.map(|rtt| format!("RTT {}", Duration::from_secs_f64(rtt)));
    let both: Vec<String> = rate.into_iter().chain(rtt).collect();
    (!both.is_empty()).then(|| both.join(", "))
}

/// The windows of several events: the only one, or their range and the last.
fn windows(events: &[ControllerEvent]) -> Option<String> {
    let set = || events.iter().filter_map(|event| event.window_bytes);
    let (last, low, high) = (set().next_back()?, set().min()?, set().max()?);
    let [last_words, low_words, high_words] = [last, low, high].map(Bytes::new);
    Some(match low == high {
        true => last_words.to_string(),
        false => format!("between {low_words} and {high_words}, last {last_words}"),
    })
}

/// A share in percent, with three digits.
fn share(of: f64) -> String {
    format!("{} %", Significant::<3>(of * 100.0))
}

/// The use of the bottleneck before the first transfer. Closed forms give it even if the transfer starts at once.
fn before(scenario: &Scenario, outcome: &Outcome) -> String {
    let first = scenario.transfers.iter().filter(|t| !t.follows).map(|t| t.start).min();
    match first {
        Some(Duration::ZERO) if outcome.derivation.is_none() => String::new(),
        Some(start) if start >= scenario.warmup + scenario.duration => String::new(),
        _ => format!(
            " ({:.1} % before the first transfer)",
            outcome.bottleneck.utilisation_before * 100.0
        ),
    }
}

/// The rate of a transfer; if it is complete, preceded by its size and completion time.
fn moved(t: &TransferOutcome, size: Option<Bytes>) -> String {
    let rate = Rate::from_f64(t.goodput_bps);
    match size.zip(t.completion_s) {
        Some((size, took)) => {
            format!("{size} in {}, goodput {rate}", Duration::from_secs_f64(took))
        }
        None => format!("goodput {rate}"),
    }
}

fn print_transfer(i: usize, t: &TransferOutcome, size: Option<Bytes>) {
    let timeouts = match t.timeouts {
        1 => "1 timeout".to_owned(),
        n => format!("{n} timeouts"),
    };
    let line = format!(
        "transfer {i}: {}, RTT {} (p99 {}), loss {}, {timeouts}, {} [{}]",
        moved(t, size),
        Duration::from_secs_f64(t.rtt_mean_s),
        Duration::from_secs_f64(t.rtt_p99_s),
        share(t.loss_rate),
        final_window(t),
        t.sizing,
    );
    wrapped(&line, "");
}

/// The last window; if the controller has left it open since, it limits nothing.
fn final_window(t: &TransferOutcome) -> String {
    let last = Bytes::new(t.window_final_bytes);
    let is_open = |event: &ControllerEvent| event.kind == SizingPhase::Open.name();
    let mut settings = t.events.iter().rev().filter(|e| e.window_bytes.is_some() || is_open(e));
    match settings.next().is_some_and(is_open) {
        true => format!("window open (last {last})"),
        false => format!("window {last}"),
    }
}

/// Why a transfer has no throughput to show, if it has none.
fn why_nothing_moved(scenario: &Scenario, i: usize, finished: &TransferOutcome) -> Option<String> {
    if finished.goodput_bps > 0.0 {
        return None;
    }
    let (from, to) = (scenario.warmup, scenario.warmup + scenario.duration);
    let start = scenario.transfers.get(i)?.start;
    if start >= to {
        return Some(format!("it starts at {start} and the run ends at {to}"));
    }
    match finished.completion_s {
        Some(took) if start.as_secs_f64() + took <= from.as_secs_f64() => Some(format!(
            "it finished {took:.3} s after its start, and the measured time began at {from}"
        )),
        _ => Some(format!("nothing was acknowledged between {from} and {to}")),
    }
}

/// The goodput of cross traffic in each direction, as each is a separate link.
fn by_direction(cross: &CrossOutcome) -> String {
    match cross.reverse_goodput_bps {
        Some(reverse) if reverse > 0.0 => {
            let forward = cross.forward_goodput_bps.unwrap_or(cross.goodput_bps - reverse);
            format!("{} forward, {} reverse", Rate::from_f64(forward), Rate::from_f64(reverse))
        }
        _ => Rate::from_f64(cross.goodput_bps).to_string(),
    }
}

fn print_derivation(derivation: &Derivation) {
    out!("how:");
    for formula in &derivation.formulas {
        wrapped(&format!("{}: {}", formula.what, formula.rule), "  ");
        wrapped(&formula.numbers, "    ");
        wrapped(&format!("[{}]", formula.source), "    ");
    }
    out!("assumed:");
    for assumption in &derivation.assumptions {
        wrapped(assumption, "  ");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sweetspot_scenario::{Engine, NoRecorder};
    use sweetspot_sim::Simulator;
    use sweetspot_theory::engine::Theory;

    fn outcome_of(changes: &[&str], engine: &dyn Engine) -> (Scenario, Outcome) {
        let text = "duration = '2s'\n[path]\nrate = '10Mbit/s'\nrtt = '10ms'\nbuffer = '20pkt'\n\
                    [[cross]]\nkind = 'poisson'\ncount = 10\nrate = '400kbit/s'\n\
                    [[transfer]]\nsizing = 'max'";
        let changes: Vec<String> = changes.iter().map(|change| (*change).to_owned()).collect();
        let scenario = Scenario::parse_with(text, &changes).unwrap();
        let outcome = engine.run(&scenario, &mut NoRecorder).unwrap();
        (scenario, outcome)
    }

    #[test]
    fn several_transfers_are_summed() {
        let (_, outcome) = outcome_of(&[], &Simulator);
        assert_eq!(all_together(&outcome.transfers), None);
        let transfer = &outcome.transfers[0];
        let at = |mbit: f64| TransferOutcome { goodput_bps: mbit * 1e6, ..transfer.clone() };
        let words = all_together(&[at(4.0), at(1.0), at(3.0)]);
        let expected = "all 3 transfers: 8 Mbit/s; each 1 Mbit/s to 4 Mbit/s, median 3 Mbit/s";
        assert_eq!(words.as_deref(), Some(expected));
    }

    #[test]
    fn utilisation_before_the_first_transfer_is_shown_only_if_known() {
        let before = |changes: &[&str], engine: &dyn Engine| {
            let (scenario, outcome) = outcome_of(changes, engine);
            before(&scenario, &outcome)
        };
        assert_eq!(before(&[], &Simulator), "");
        assert!(
            before(&["transfer.start=1s"], &Simulator).ends_with(" % before the first transfer)")
        );
        // 10 x 0.4 of 10 Mbit/s: 40 %.
        assert_eq!(before(&[], &Theory), " (40.0 % before the first transfer)");
    }

    #[test]
    fn the_heading_shows_the_measured_interval_of_engines_that_run_over_time() {
        let words = |engine: &dyn Engine| {
            let (scenario, outcome) = outcome_of(&["warmup=1s"], engine);
            heading(&scenario, &outcome)
        };
        let measured = "Untitled scenario (sim engine, seed 1, measured from 1 s to 3 s)";
        assert_eq!(words(&Simulator), measured);
        assert_eq!(words(&Theory), "Untitled scenario (theory engine, seed 1)");
    }

    #[test]
    fn only_a_complete_transfer_shows_its_duration() {
        let words = |size: &str| {
            let (scenario, outcome) = outcome_of(&[&format!("transfer.size={size}")], &Simulator);
            moved(&outcome.transfers[0], scenario.transfers[0].size)
        };
        assert!(words("150kB").starts_with("150 kB in "), "{}", words("150kB"));
        assert!(!words("1GB").contains(" in "), "{}", words("1GB"));
    }

    #[test]
    fn a_released_window_is_not_shown_as_a_limit() {
        let (_, outcome) = outcome_of(&[], &Simulator);
        let event = |kind: &str, at_s: f64| ControllerEvent {
            at_s,
            kind: kind.to_owned(),
            window_bytes: None,
            rate_bps: None,
            rtt_s: None,
            reason: None,
            congestion_to: None,
        };
        let words = |events: Vec<ControllerEvent>| {
            let transfer = outcome.transfers[0].clone();
            final_window(&TransferOutcome { events, window_final_bytes: 9000, ..transfer })
        };
        let limited = |at_s| ControllerEvent { window_bytes: Some(9000), ..event("limited", at_s) };
        let opened = vec![limited(1.0), event("open", 2.0), event("saturated", 2.5)];
        assert_eq!(words(opened.clone()), "window open (last 9 kB)");
        assert_eq!(words([opened, vec![limited(3.0)]].concat()), "window 9 kB");
        assert_eq!(words(Vec::new()), "window 9 kB");
    }

    #[test]
    fn an_event_without_a_window_shows_its_measured_values() {
        let event = ControllerEvent {
            at_s: 0.25,
            kind: "capacity-estimated".to_owned(),
            window_bytes: None,
            rate_bps: Some(48e6),
            rtt_s: Some(0.04),
            reason: None,
            congestion_to: None,
        };
        let expected = "     0.250 s  capacity-estimated  48 Mbit/s, RTT 40 ms";
        assert_eq!(event_lines(&[event], Duration::ZERO), [expected]);
    }

    #[test]
    fn an_event_shows_its_new_value_and_its_reason() {
        let event = |at_s: f64, kind: &str, congestion: Option<&str>, reason: Option<&str>| {
            ControllerEvent {
                at_s,
                kind: kind.to_owned(),
                window_bytes: (kind == "limited").then_some(9000),
                rate_bps: None,
                rtt_s: None,
                reason: reason.map(str::to_owned),
                congestion_to: congestion.map(str::to_owned),
            }
        };
        let events = [
            event(1.0, "switched", Some("bbr"), None),
            event(2.0, "switched", Some("own"), None),
            event(3.0, "open", None, Some("no packet train arrived")),
            event(4.0, "open", None, Some("the rate fell")),
            event(5.0, "limited", None, None),
            event(6.5, "limited", None, None),
        ];
        let expected = [
            "     1.000 s  switched  to bbr",
            "     2.000 s  switched  to the sender's own congestion control",
            "     3.000 s  open  no packet train arrived",
            "     4.000 s  open  the rate fell",
            "     5.000 s  limited 2 times until 6.500 s, 9 kB",
        ];
        assert_eq!(event_lines(&events, Duration::ZERO), expected);
        // A window set before the start takes effect at the start; later events keep their times.
        let late = event_lines(&events[4..], Duration::from_secs(6));
        assert_eq!(late, ["     6.000 s  limited 2 times until 6.500 s, 9 kB"]);
    }

    #[test]
    fn a_line_for_several_events_has_their_count_and_window_range() {
        let lines = |windows: &[u64]| {
            let limited = |(i, window): (usize, &u64)| ControllerEvent {
                at_s: i as f64,
                kind: "limited".to_owned(),
                window_bytes: Some(*window),
                rate_bps: None,
                rtt_s: None,
                reason: None,
                congestion_to: None,
            };
            let events: Vec<_> = windows.iter().enumerate().map(limited).collect();
            event_lines(&events, Duration::ZERO)
        };
        for (windows, words) in [
            (vec![1000], "  1 kB"),
            (vec![1000, 1000], " 2 times until 1.000 s, 1 kB"),
            (vec![9000, 1000], " 2 times until 1.000 s, between 1 kB and 9 kB, last 1 kB"),
            (
                vec![3000, 9000, 1000, 5000],
                " 4 times until 3.000 s, between 1 kB and 9 kB, last 5 kB",
            ),
        ] {
            assert_eq!(lines(&windows), [format!("     0.000 s  limited{words}")]);
        }
        for (windows, words) in [
            (vec![1000, 3000, 3000, 9000], "from 1 kB to 9 kB in 2 steps, until 3.000 s"),
            (vec![1000, 3000], "from 1 kB to 3 kB at 1.000 s"),
        ] {
            assert_eq!(lines(&windows), [format!("     0.000 s  raised  {words}")]);
        }
    }
}
