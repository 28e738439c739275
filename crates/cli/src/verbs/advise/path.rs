//! The path of `advise window`: written out, named, or from a scenario.

use std::path::Path;

use clap::ValueEnum;
use sweetspot_path::{DirectionSpec, PathError, PathSpec, QueueDiscipline};
use sweetspot_program::path_option;
use sweetspot_program::usage_error::UsageError;
use sweetspot_scenario::{Cross, PathDirection, Scenario, TrafficKind};
use sweetspot_units::{Bytes, Duration, Probability};

/// A direction of a path, as seen from its near end: upload or download.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DirectionChoice {
    Up,
    Down,
}

/// The bottleneck in the direction of the data, and the RTT of the path.
#[derive(Debug, Clone)]
pub struct PathFacts {
    pub direction: DirectionSpec,
    /// The RTT without queues, but with jitter and aggregation.
    pub rtt: Duration,
    pub mtu: Bytes,
    /// The warning about a scenario's cross traffic, which is not part of a path.
    pub cross: Option<String>,
}

/// The warning about properties of a path that the formulas ignore.
pub fn left_out(direction: &DirectionSpec) -> Option<String> {
    let properties = [
        (direction.queue != QueueDiscipline::DropTail, "its queue discipline counts as drop-tail"),
        (direction.loss_burst > 1, "its losses count as single ones"),
        (direction.reorder > Probability::ZERO, "its reordering is left out"),
    ];
    let all: Vec<&str> =
        properties.into_iter().filter_map(|(is_set, words)| is_set.then_some(words)).collect();
    (!all.is_empty()).then(|| format!("the formulas simplify this path: {}", all.join("; ")))
}

/// The time that jitter and aggregation add to the RTT. Packets wait behind the one with the longest delay, unless they overtake
/// it.
fn variation(directions: [&DirectionSpec; 2]) -> [(&'static str, Duration); 2] {
    let jitter = |direction: &DirectionSpec| {
        direction.jitter.scaled(if direction.jitter_reorders { 0.5 } else { 1.0 })
    };
    let sum = |of: fn(&DirectionSpec) -> Duration| of(directions[0]) + of(directions[1]);
    [
        ("jitter", jitter(directions[0]) + jitter(directions[1])),
        ("aggregation", sum(|direction| direction.aggregation)),
    ]
}

/// The path of `text`; a key that it lacks is the one in `given`.
fn completed(text: &str, given: &[(&str, String)]) -> Result<PathSpec, PathError> {
    let mut written = text.to_owned();
    for _ in given {
        let Err(PathError::Missing(missing, _)) = written.parse::<PathSpec>() else { break };
        let Some((key, value)) = given.iter().find(|(key, _)| *key == missing) else { break };
        written += &format!(" {key}={value}");
    }
    written.parse()
}

/// The path as written or named, or the path of a scenario, for data in one direction; `given` has the keys of options.
pub fn read_path(
    text: &str,
    direction_choice: Option<DirectionChoice>,
    given: &[(&str, String)],
) -> Result<PathFacts, Box<dyn std::error::Error>> {
    // As in `run`, a dash stands for a scenario on standard input.
    let ([up, down], own, rtt, mtu, cross) = if text == "-" || path_option::is_scenario(text) {
        let scenario = sweetspot_program::scenario_file::read_path(Path::new(text))?;
        let cross = cross_left_out(&scenario);
        let path = scenario.path;
        let reverse =
            path.hops_of(PathDirection::Backward).iter().min_by_key(|hop| hop.lasting_rate());
        let [forward, backward] = [*path.narrow(), reverse.copied().unwrap_or(*path.narrow())];
        let asked =
            direction_choice.filter(|asked| (*asked == DirectionChoice::Down) != path.is_download);
        if asked.is_some() && forward == backward {
            let [own, other] = match path.is_download {
                true => ["download", "upload"],
                false => ["upload", "download"],
            };
            note!(
                "sweetspot: {text} has only the {own}; this assumes that the {other} is the same"
            );
        }
        let (both, own) = match path.is_download {
            true => ([backward, forward], DirectionChoice::Down),
            false => ([forward, backward], DirectionChoice::Up),
        };
        (both, own, path.rtt, path.packet, cross)
    } else {
        let wrong =
            |error: PathError| UsageError::new(format!("--{}", path_option::wrong_path(&error)));
        let path = completed(text, given).map_err(wrong)?;
        ([path.up, path.down], DirectionChoice::Up, path.rtt(), path.mtu, None)
    };
    let [up_rate, down_rate] = [up, down].map(|direction| direction.lasting_rate());
    if direction_choice.is_none() && up_rate != down_rate {
        note!(
            "sweetspot: {}",
            match own {
                DirectionChoice::Up => format!(
                    "this is for the upload, from near to far ({up_rate}); for the download ({down_rate}), add --direction down"
                ),
                DirectionChoice::Down => format!(
                    "this is for the download, from far to near ({down_rate}); for the upload ({up_rate}), add --direction up"
                ),
            }
        );
    }
    let direction = match direction_choice.unwrap_or(own) {
        DirectionChoice::Up => up,
        DirectionChoice::Down => down,
    };
    if direction.lasting_rate() < direction.rate {
        return Err(UsageError::new(format!(
            "--path {text}: its policer drops packets instead of queueing them, so no formula gives a window; \
             write the path into a scenario and search it with `sweetspot sweep --find-best`"
        ))
        .into());
    }
    let varied = variation([&up, &down]).into_iter().filter(|(_, added)| *added > Duration::ZERO);
    let added = varied.clone().fold(Duration::ZERO, |sum, (_, added)| sum + added);
    let names: Vec<&str> = varied.map(|(name, _)| name).collect();
    if !names.is_empty() {
        let verb = if names.len() > 1 { "add" } else { "adds" };
        note!("sweetspot: {} {verb} {added} to the RTT of {rtt}", names.join(" and "));
    }
    Ok(PathFacts { direction, rtt: rtt + added, mtu, cross })
}

/// The warning about the cross traffic of `scenario`, with the option to include it; `None` without cross traffic.
fn cross_left_out(scenario: &Scenario) -> Option<String> {
    let largest = scenario.cross.iter().map(|cross| share(cross, scenario));
    let largest = largest.flatten().max_by(|one, other| one.1.total_cmp(&other.1));
    let reason = "the scenario's cross traffic is left out;";
    (!scenario.cross.is_empty()).then(|| match (largest, scenario.cross.len()) {
        (Some((kind, share)), 1) => format!("{reason} to count it, add --cross {kind}:{share:.0}%"),
        (Some((kind, share)), _) => {
            format!("{reason} to count its largest part, add --cross {kind}:{share:.0}%")
        }
        (None, _) => format!("{reason} give its share, such as --cross udp:30%"),
    })
}

/// The kind of cross traffic as an option, and its share of the capacity in percent; `None` if only congestion limits it.
fn share(cross: &Cross, scenario: &Scenario) -> Option<(&'static str, f64)> {
    let packet = scenario.path.packet;
    let mean = |(low, high): (Duration, Duration)| (low + high).as_secs_f64() / 2.0;
    let (kind, bits) = match &cross.kind {
        TrafficKind::Pareto { count, rate, .. } | TrafficKind::Poisson { count, rate } => {
            ("udp", rate.as_f64() * *count as f64)
        }
        TrafficKind::Elephants { count, window } => {
            let window = (*window)?.in_bytes(packet).as_f64() * 8.0;
            ("elephants", window * *count as f64 / mean(cross.rtt))
        }
        TrafficKind::Mice { count, packets, sleep, .. } => {
            let each = (packets.0 + packets.1) as f64 / 2.0;
            // Slow start begins with two packets.
            let cycle = mean(*sleep) + (each / 2.0 + 1.0).log2() * mean(cross.rtt);
            ("mice", each * packet.as_f64() * 8.0 * *count as f64 / cycle)
        }
        TrafficKind::ClosedLoop { users, size_mean, think_mean, .. } => {
            ("mice", size_mean.as_f64() * 8.0 * *users as f64 / think_mean.as_secs_f64())
        }
        TrafficKind::Arrivals { rate, .. } => ("mice", rate.as_f64()),
    };
    let percent = bits / scenario.path.narrow().lasting_rate().as_f64() * 100.0;
    // The share must leave some capacity.
    (percent > 0.0).then_some((kind, percent.min(99.0)))
}
