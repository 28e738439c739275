use sweetspot_units::{Duration, grouped};

use crate::outcome::{DemoOutcome, VariantOutcome};

/// The result in sentences: first SOBAS (or else the fastest variant), then one for each of the
/// others. The table beside it has the reasons against runs that are not certified.
pub fn headline(outcome: &DemoOutcome) -> Vec<String> {
    let finished = outcome.variants.iter().filter_map(|c| c.duration.map(|d| (c, d)));
    // The path of an uncertified run was another than the others had.
    let (finished, doubtful): (Vec<(&VariantOutcome, Duration)>, Vec<_>) =
        finished.partition(|(c, _)| c.distrust().is_none());
    let left_out = doubtful.iter().map(|(c, _)| {
        format!("{} is not compared: its emulation could not be certified.", name(c))
    });
    let chosen = finished
        .iter()
        .find(|(c, _)| c.sizing == "sobas")
        .or_else(|| finished.iter().min_by_key(|(_, duration)| *duration));
    let Some(&(hero, time)) = chosen else {
        let none = if doubtful.is_empty() {
            "No transfer finished."
        } else {
            "No run is certified, so none is compared; repeat the demo when the machine is idle."
        };
        return vec![none.to_owned()];
    };
    let share = hero.share_of_capacity.map_or(String::new(), |share| {
        format!(", {:.0} % of what this path can carry", share * 100.0)
    });
    let first = format!(
        "{} moved {} in {}{share}{}{}.",
        name(hero),
        outcome.file.size,
        seconds(time),
        retransmitted(hero),
        delay(hero, outcome.path.rtt)
    );
    let others = finished.iter().filter(|(c, _)| !std::ptr::eq(*c, hero));
    let others = others.map(|&(c, other)| comparison(c, other, (hero, time)));
    [first].into_iter().chain(others).chain(left_out).collect()
}

fn name(c: &VariantOutcome) -> String {
    let sizing = match c.sizing.as_str() {
        "sobas" => "SOBAS",
        "sobas:paper" => "SOBAS as published",
        "kernel" => "The kernel's own sizing",
        "bdp" => "A window of one BDP",
        other => other,
    };
    format!("{sizing} ({})", c.congestion)
}

/// The median RTT, and what it would be without a queue.
fn delay(c: &VariantOutcome, base: Duration) -> String {
    c.rtt_median.map_or(String::new(), |rtt| {
        let (rtt, base) = (milliseconds(rtt), milliseconds(base));
        format!(", at a median RTT of {rtt} ({base} without a queue)")
    })
}

/// Compares the median RTTs of `c` and `hero`; empty if they agree within a hundredth.
fn longer(c: &VariantOutcome, hero: &VariantOutcome) -> String {
    let Some((rtt, of_hero)) = c.rtt_median.zip(hero.rtt_median) else { return String::new() };
    let ratio = rtt.as_secs_f64() / of_hero.as_secs_f64();
    let (percent, how) = match ratio {
        ratio if ratio > 1.01 => ((ratio - 1.0) * 100.0, "longer"),
        ratio if ratio < 0.99 => ((1.0 - ratio) * 100.0, "shorter"),
        _ => return String::new(),
    };
    format!("; its median RTT was {percent:.0} % {how} ({})", milliseconds(rtt))
}

fn milliseconds(rtt: Duration) -> String {
    format!("{:.1} ms", rtt.as_secs_f64() * 1e3)
}

/// `c`, which took `time`, beside the hero and its time.
fn comparison(
    c: &VariantOutcome,
    time: Duration,
    (hero, of_hero): (&VariantOutcome, Duration),
) -> String {
    let ratio = time.as_secs_f64() / of_hero.as_secs_f64();
    // Within a hundredth two runs of the same program differ as well.
    let how = if ratio > 1.01 {
        format!("took {ratio:.2} times as long ({})", seconds(time))
    } else if ratio < 0.99 {
        format!("took {:.0} % less time ({})", 100.0 * (1.0 - ratio), seconds(time))
    } else {
        format!("took as long ({})", seconds(time))
    };
    format!("{} {how}{}{}.", name(c), retransmitted(c), longer(c, hero))
}

fn retransmitted(c: &VariantOutcome) -> String {
    match c.retransmitted_segments {
        None => String::new(),
        Some(0) => ", without retransmissions".to_owned(),
        Some(1) => ", with one segment retransmitted".to_owned(),
        Some(n) => format!(", with {} segments retransmitted", grouped(n)),
    }
}

pub fn seconds(t: Duration) -> String {
    // Three digits, so that short transfers can be told apart.
    let decimals = if t < Duration::from_secs(10) { 2 } else { 1 };
    format!("{:.decimals$} s", t.as_secs_f64())
}
