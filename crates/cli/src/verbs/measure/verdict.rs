//! The verdict of the short test.

use sweetspot_measure::{
    Bound, DelayUnderLoad, Direction, DirectionReport, Finding, Purpose, Skipped,
};
use sweetspot_transfer::Measured;
use sweetspot_units::{Bytes, Duration, Rate};

use super::card::{graded, grades, ranged, rate};
use super::outlook::{Expected, Outlook, SLOWER, WORTH};
use super::words::{Reasons, range, short};
use sweetspot_program::print::wrapped;

pub struct Verdict {
    message: String,
    lines: Vec<String>,
    /// The skipped measurements, a line per direction.
    left_out: Vec<String>,
    remedy: Option<&'static str>,
}

/// The verdict: a sentence per direction, and the remedy.
pub fn verdict(measured: &Measured, outlook: &Outlook) -> Verdict {
    let idle = measured.report.round_trip.median.value();
    let mut lines = Vec::new();
    let mut message = None;
    let (mut remedy, mut simulated, mut headline) = (None, None, None);
    for (place, direction) in measured.report.directions.iter().enumerate() {
        let carried = direction.load.as_ref().and_then(|load| load.goodput.value());
        let rates = rates(carried, &direction.capacity);
        let mut line = format!("{}: {rates}", direction.direction.name());
        if let Some(idle) = idle {
            line += &format!("; {} idle", ms(idle.as_secs_f64()));
        }
        let load = direction.load.as_ref();
        let loaded = load.and_then(|load| load.round_trip.value());
        if let Some((loaded, load)) = loaded.zip(load.filter(|load| load.grade.is_some())) {
            let (by, grade) = (format!(" by {}", load.congestion), graded(load));
            line += &format!(", {} loaded{by}, grade {grade}", ms(loaded.as_secs_f64()));
            if let Some(idle) = idle.filter(|_| place == 0) {
                headline = Some(in_a_sentence(direction, load, idle, loaded));
            }
        }
        message.get_or_insert_with(|| line.clone());
        if place > 0 && outlook.window_bytes.is_some() {
            line += "; `measure --direction up` simulates a window in this direction";
        }
        if place == 0 {
            simulated = at_a_window(outlook, direction);
            if loaded.is_some_and(|loaded| is_worth_a_window(outlook, carried, loaded)) {
                remedy = Some("sweetspot tune run -- COMMAND");
            }
        }
        lines.push(line);
    }
    lines.extend(simulated);
    lines.extend(outlook.contradiction.clone());
    if lines.is_empty() {
        // A measurement from one side, without a far end that runs Sweetspot.
        let idle = idle.map_or("RTT unknown".to_owned(), |idle| ms(idle.as_secs_f64()));
        let why = outlook.unknown.as_deref().unwrap_or("nothing else was measured");
        lines.push(format!("{idle} idle; {why}"));
    }
    let message = headline.or(message).unwrap_or_else(|| lines.join(" "));
    let left_out_of_rtt = left_out("RTT", &measured.report.left_out);
    let of_directions = measured.report.directions.iter();
    let left_out = of_directions.filter_map(|d| left_out(d.direction.name(), &d.left_out));
    let left_out = left_out_of_rtt.into_iter().chain(left_out).collect();
    Verdict { message, lines, left_out, remedy }
}

/// The grade of a direction in plain words.
fn in_a_sentence(
    direction: &DirectionReport,
    load: &DelayUnderLoad,
    idle: Duration,
    loaded: Duration,
) -> String {
    let transfer = match direction.direction {
        Direction::Down => "download",
        Direction::Up => "upload",
    };
    format!(
        "Grade {}: the RTT rises from {} when one {} {transfer} fills the path",
        grades(load),
        range(idle, loaded),
        load.congestion
    )
}

/// The skipped measurements of a direction or of the RTT as a line, with their reasons.
fn left_out(of_what: &str, skipped: &[Skipped]) -> Option<String> {
    let mut reasons = Reasons::default();
    let mut is_rough = false;
    for one in skipped {
        match one.purpose {
            // The line of a direction has the reason for an unknown capacity.
            Purpose::RoughCapacity | Purpose::Capacity
                if !one.is_cut_short || std::mem::replace(&mut is_rough, true) => {}
            _ => reasons.add(one.name(), &one.why),
        }
    }
    let words = |(why, what): &(&str, Vec<String>)| format!("{} ({why})", what.join(", "));
    let words: Vec<String> = reasons.0.iter().map(words).collect();
    (!words.is_empty()).then(|| format!("{of_what}, left out: {}", words.join("; ")))
}

/// The result of simulated TCP with a window of the right size, or the reason why it is unknown.
fn at_a_window(outlook: &Outlook, direction: &DirectionReport) -> Option<String> {
    if outlook.is_upper_bound {
        let why = direction.loss.rate.why().map(|why| format!(" ({why})")).unwrap_or_default();
        return Some(format!(
            "No window was simulated: the rate depends on random loss, which was not measured{why}."
        ));
    }
    let load = direction.load.as_ref();
    let (window, held) = outlook.window_bytes.zip(outlook.window.as_ref())?;
    let window = Bytes::new(window);
    let (name, rate, rtt) = (held.congestion, ranged(held, outlook), ms(held.rtt_s));
    let kernel = outlook.congestion.iter().find(|free| free.congestion == name);
    let free = kernel.map(|free| (short(free.goodput_bps / 1e6), ms(free.rtt_s)));
    let measured = load.and_then(|load| load.goodput.value());
    let slower = format!("slower than the measured {}", load.map_or("TCP", |l| &l.congestion));
    let mut words = match (is_slower(held, measured), free) {
        (true, Some((free, free_rtt)))
            if kernel.is_some_and(|kernel| is_slower(kernel, measured)) =>
        {
            format!(
                "{name} would be {slower}, whatever its window: {rate}, RTT {rtt} with {window}; {free} Mbit/s, RTT {free_rtt} with \
                 the kernel's."
            )
        }
        (true, _) => {
            format!("{name} with a window of {window} would be {slower}: {rate}, RTT {rtt}.")
        }
        (false, free) => {
            let free = free.map(|(rate, rtt)| format!("; the kernel's: {rate} Mbit/s, RTT {rtt}"));
            let free = free.unwrap_or_default();
            format!("{name} with a window of {window}: {rate}, RTT {rtt}{free}.")
        }
    };
    if held.is_wide() {
        words += " The interval comes from the random loss.";
    }
    if !outlook.assumed.is_empty() {
        words += &format!(" Assumed: {}.", outlook.assumed.join("; "));
    }
    Some(format!("simulated {}: {words}", direction.direction.name()))
}

/// Whether a window keeps the measured rate and reduces the RTT under load by more than [`WORTH`].
fn is_worth_a_window(outlook: &Outlook, measured: Option<Rate>, loaded: Duration) -> bool {
    !outlook.is_upper_bound
        && outlook.window.as_ref().is_some_and(|held| {
            !is_slower(held, measured) && loaded.as_secs_f64() > held.rtt_s + WORTH.as_secs_f64()
        })
}

fn is_slower(held: &Expected, measured: Option<Rate>) -> bool {
    measured.is_some_and(|rate| held.goodput_bps < SLOWER * rate.as_f64())
}

impl Verdict {
    /// The results for the direction measured first.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The lines of the verdict, a sentence per direction.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// The command that removes the limits that can be removed.
    pub fn remedy(&self) -> Option<&'static str> {
        self.remedy
    }

    /// The lines, and those for the skipped measurements.
    pub fn all_lines(&self) -> Vec<&str> {
        self.lines.iter().chain(&self.left_out).map(String::as_str).collect()
    }

    pub fn text(&self) -> String {
        self.all_lines().join(" | ")
    }

    /// Prints the verdict, with the command that removes the limits that can be removed.
    pub fn print(&self) {
        self.all_lines().iter().for_each(|line| wrapped(line, ""));
        if let Some(command) = self.remedy {
            out!("To hold downloads at that window: {command}");
        }
    }
}

/// The measured rates of a direction.
fn rates(goodput: Option<Rate>, capacity: &Finding<Rate>) -> String {
    let limit = match capacity {
        Finding::Known { .. } => Some(format!("capacity {}", rate(capacity))),
        // TCP's goodput is a bound, too, and stands before this one.
        Finding::Bounded { bound: Bound::AtLeast(low), .. } if goodput == Some(*low) => {
            Some("capacity at least that".to_owned())
        }
        Finding::Bounded { bound: Bound::AtLeast(low), why } => {
            let why = if goodput.is_none() { format!(" ({why})") } else { String::new() };
            Some(format!("capacity at least {}{why}", mbit(low.as_f64())))
        }
        _ => None,
    };
    let goodput = goodput.map(|rate| format!("goodput {}", mbit(rate.as_f64())));
    let known: Vec<String> = goodput.into_iter().chain(limit).collect();
    if known.is_empty() { no_rate(capacity) } else { known.join(", ") }
}

/// The reason why a direction has no rate, from its capacity: the first reason that a reader can act on.
fn no_rate(capacity: &Finding<Rate>) -> String {
    match capacity.why() {
        Some(why) => format!("rate unknown ({why})"),
        None => "rate unknown".to_owned(),
    }
}

fn mbit(bps: f64) -> String {
    let digits = if bps >= 1e7 { 0 } else { 1 };
    format!("{:.digits$} Mbit/s", bps / 1e6)
}

fn ms(seconds: f64) -> String {
    match seconds * 1e3 {
        ms if ms < 0.1 => format!("{:.0} us", ms * 1e3),
        ms if ms < 1.0 => format!("{ms:.2} ms"),
        ms => format!("{ms:.0} ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::measure::outlook::tests::{load, outlook};
    use sweetspot_measure::{DelayUnderLoad, Measurement, Plan};

    /// A download under this load, without random loss.
    fn direction(load: DelayUnderLoad) -> DirectionReport {
        let mut found = Measurement::new(Plan::full()).report().directions.remove(0);
        (found.load, found.loss.rate) = (Some(load), Finding::unknown("it was skipped"));
        found
    }

    #[test]
    fn skipped_measurements_are_listed_by_their_reason() {
        let skipped = |is_cut_short: bool| {
            move |purpose, why: &str| Skipped { purpose, why: why.to_owned(), is_cut_short }
        };
        let all = |is_cut_short| {
            let skipped = skipped(is_cut_short);
            [
                skipped(Purpose::RoughCapacity, "it costs 9 kB"),
                skipped(Purpose::Capacity, "it costs 180 kB"),
                skipped(Purpose::RandomLoss, "it costs 1 MB"),
                skipped(Purpose::Load, "it costs 9 MB"),
                skipped(Purpose::Queue, "it costs 1 MB"),
            ]
        };
        assert_eq!(
            left_out("up", &all(false)).unwrap(),
            "up, left out: random loss, buffer and queue discipline (it costs 1 MB); \
             goodput and delay under load (it costs 9 MB)"
        );
        let known = left_out("up", &all(true)).unwrap();
        assert!(
            known.contains(
                "left out: more exact capacity (it costs 9 kB); more exact random loss, "
            ),
            "{known}"
        );
        assert!(!known.contains("180 kB"), "{known}");
        assert_eq!(left_out("up", &[]), None);
    }

    /// The rate with a window depends on random loss, which is unknown here.
    #[test]
    fn no_window_is_recommended_without_measured_loss() {
        let measured = Some(Rate::from_mbit_per_second(20));
        let known = outlook([20.0, 20.0, 20.0]);
        let direction = direction(load("cubic", 20.0, 80));
        let words = |outlook: &Outlook| at_a_window(outlook, &direction).unwrap();
        assert!(words(&known).contains("window of 250 kB"));
        assert!(is_worth_a_window(&known, measured, Duration::from_millis(80)));

        let unknown = Outlook { is_upper_bound: true, ..known };
        let words = words(&unknown);
        assert!(
            words.ends_with("random loss, which was not measured (it was skipped)."),
            "{words}"
        );
        assert!(!words.contains("window of"), "{words}");
        assert!(!is_worth_a_window(&unknown, measured, Duration::from_millis(80)));
    }

    #[test]
    fn a_wide_interval_is_attributed_to_random_loss_not_to_a_window() {
        // A mean of 20 Mbit/s with any window.
        let at_least = |low: f64| {
            let outlook = outlook([20.0; 3]);
            let free = outlook.congestion[0].clone();
            let window = Some(Expected { goodput_low_bps: low * 1e6, ..free });
            Outlook { window, ..outlook }
        };
        let words = |low: f64, measured: f64| {
            at_a_window(&at_least(low), &direction(load("bbr", measured, 80))).unwrap()
        };
        // 15 is less than nine tenths of 20; 19 is not.
        assert!(
            words(15.0, 20.0).contains("(15.0 to 20.0)")
                && words(15.0, 20.0).contains("random loss")
        );
        assert!(
            words(19.0, 20.0).contains("(19.0 to 20.0)")
                && !words(19.0, 20.0).contains("random loss")
        );
        // Every simulated RTT is 20 ms.
        assert_eq!(
            words(20.0, 40.0),
            "simulated down: cubic would be slower than the measured bbr, whatever its window: 20.0 Mbit/s, RTT 20 ms with 250 kB; \
             20.0 Mbit/s, RTT 20 ms with the kernel's."
        );
    }

    #[test]
    fn a_heading_states_the_grades_of_the_interval_in_a_sentence() {
        let ms = Duration::from_millis;
        let round_trip = Finding::known(ms(48), ms(43), ms(60), "");
        let load = DelayUnderLoad { round_trip, increase: Some(ms(8)), ..load("bbr", 47.0, 48) };
        // The idle RTT is 40 ms, so the increase is 3 ms to 20 ms.
        assert_eq!(
            in_a_sentence(&direction(load.clone()), &load, ms(40), ms(48)),
            "Grade A+ to A: the RTT rises from 40.0 to 48.0 ms when one bbr download fills the path"
        );
    }

    #[test]
    fn an_unknown_rate_comes_with_its_reason() {
        let why = "too few packets of the trains arrived";
        assert_eq!(rates(None, &Finding::unknown(why)), format!("rate unknown ({why})"));
        // On a path faster than the sender, TCP's goodput is known and the capacity has a bound.
        let bound = Bound::AtLeast(Rate::from_mbit_per_second(1300));
        let goodput = Some(Rate::from_mbit_per_second(2200));
        let words = rates(goodput, &Finding::bounded(bound, why));
        assert_eq!(words, "goodput 2200 Mbit/s, capacity at least 1300 Mbit/s");
        let bounded = || Finding::bounded(Bound::AtLeast(Rate::from_mbit_per_second(1300)), why);
        let equal = Some(Rate::from_mbit_per_second(1300));
        assert_eq!(rates(equal, &bounded()), "goodput 1300 Mbit/s, capacity at least that");
        assert_eq!(rates(None, &bounded()), format!("capacity at least 1300 Mbit/s ({why})"));
    }
}
