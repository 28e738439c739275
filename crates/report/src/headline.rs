use sweetspot_units::{Duration, grouped};

use crate::outcome::{DemoOutcome, VariantOutcome};

/// Summarises the result in sentences: first SOBAS (or the fastest variant without it), then each other variant, then which of
/// them were better. The table beside it explains why runs are not certified.
pub fn headline(outcome: &DemoOutcome) -> Vec<String> {
    let finished = outcome.variants.iter().filter_map(|c| c.duration.map(|d| (c, d)));
    // The path of an uncertified run differed from the others' path.
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
    let others: Vec<_> =
        finished.iter().copied().filter(|(c, _)| !std::ptr::eq(*c, hero)).collect();
    let compared = others.iter().map(|&(c, other)| comparison(c, other, (hero, time)));
    let concluded = (!others.is_empty()).then(|| conclusion((hero, time), &others));
    [first].into_iter().chain(compared).chain(concluded).chain(left_out).collect()
}

/// The name of a variant, as in the table and in `--sizing`.
fn name(c: &VariantOutcome) -> String {
    format!("{}+{}", c.sizing, c.congestion)
}

/// The median RTT, and the RTT without a queue.
fn delay(c: &VariantOutcome, base: Duration) -> String {
    c.rtt_median.map_or(String::new(), |rtt| {
        let (rtt, base) = (milliseconds(rtt), milliseconds(base));
        format!(", at a median RTT of {rtt} ms ({base} ms without a queue)")
    })
}

/// Compares the median RTTs of `c` and `hero`; empty if they agree within one percent.
fn longer(c: &VariantOutcome, hero: &VariantOutcome) -> String {
    let Some((rtt, of_hero)) = c.rtt_median.zip(hero.rtt_median) else { return String::new() };
    let (percent, how) = match beside(rtt, of_hero) {
        0 => return String::new(),
        percent if percent > 0 => (percent, "longer"),
        percent => (-percent, "shorter"),
    };
    format!("; its median RTT was {percent} % {how} ({} ms)", milliseconds(rtt))
}

/// An RTT in milliseconds, with the three digits that a histogram with bins of up to 0.8 % resolves.
pub fn milliseconds(rtt: Duration) -> String {
    let ms = rtt.as_secs_f64() * 1e3;
    let decimals = match ms {
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    format!("{ms:.decimals$}")
}

/// Compares `c`, which took `time`, with the hero and its time.
fn comparison(
    c: &VariantOutcome,
    time: Duration,
    (hero, of_hero): (&VariantOutcome, Duration),
) -> String {
    let how = match beside(time, of_hero) {
        0 => "took as long".to_owned(),
        percent if percent < 0 => format!("took {} % less time", -percent),
        percent if percent < 100 => format!("took {percent} % longer"),
        _ => format!("took {:.1} times as long", time.as_secs_f64() / of_hero.as_secs_f64()),
    };
    format!("{} {how} ({}){}{}.", name(c), seconds(time), retransmitted(c), longer(c, hero))
}

/// The percentage by which `one` is longer than `other`; zero within one percent, because two runs of the same program also
/// differ by that much.
fn beside(one: Duration, other: Duration) -> i64 {
    let percent = (one.as_secs_f64() / other.as_secs_f64() - 1.0) * 100.0;
    if percent.abs() > 1.0 { percent.round() as i64 } else { 0 }
}

/// Lists the variants that were better than the hero, in time, median RTT or retransmissions and worse in none, and those that
/// were equal in all.
fn conclusion(hero: (&VariantOutcome, Duration), others: &[(&VariantOutcome, Duration)]) -> String {
    let differences = |c: &VariantOutcome, time| {
        let (rtt, of_hero) = c.rtt_median.zip(hero.0.rtt_median)?;
        let (again, by_hero) = c.retransmitted_segments.zip(hero.0.retransmitted_segments)?;
        Some([beside(time, hero.1).cmp(&0), beside(rtt, of_hero).cmp(&0), again.cmp(&by_hero)])
    };
    let (mut better, mut equal) = (Vec::new(), Vec::new());
    for (c, time) in others {
        match differences(c, *time) {
            Some(all) if all.iter().all(|each| each.is_eq()) => equal.push(name(c)),
            Some(all) if all.iter().all(|each| each.is_le()) => better.push(name(c)),
            _ => {}
        }
    }
    let of_hero = name(hero.0);
    let how = "in time, RTT or retransmissions without being worse in another";
    let first = match better.as_slice() {
        [] => format!("No other variant was better than {of_hero} {how}."),
        better => format!("Better than {of_hero} here, {how}: {}.", better.join(", ")),
    };
    match equal.as_slice() {
        [] => first,
        equal => format!(
            "{first} With as many retransmissions, and within 1 % of it in time and RTT: {}.",
            equal.join(", ")
        ),
    }
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
    // Three significant digits, so that short transfers differ.
    let decimals = if t < Duration::from_secs(10) { 2 } else { 1 };
    format!("{:.decimals$} s", t.as_secs_f64())
}
