use sweetspot_path::PathSpec;
use sweetspot_units::{Bytes, Duration, Rate};

/// A client program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// This many parallel curl downloads from nginx.
    Curl(usize),
    /// curl reading no faster than this.
    SlowReader(Rate),
    /// curl reading from an nginx that sends no faster than this.
    SlowSender(Rate),
    /// curl downloading files of this size, one after the other.
    Short(Bytes),
    /// curl for this long, then a second time, when the path is known.
    Again(Duration),
    /// rsync from an rsync daemon.
    Rsync,
    /// A simple program that connects and reads from a server that sends at once.
    Plain,
    /// iperf3 in reverse mode, over this many connections.
    Iperf3(usize),
    /// iperf3 sending.
    Upload,
    /// iperf3 sending for this long, then a second time.
    UploadAgain(Duration),
}

/// The mechanism that the tuner uses (`sweetspot tune --via`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Via {
    /// Outside the process, by borrowing its sockets.
    Pidfd,
    /// Inside the kernel, with BPF programs.
    Bpf,
}

impl Via {
    /// Both mechanisms.
    pub const ALL: [Via; 2] = [Via::Pidfd, Via::Bpf];

    /// The option's value, and the suffix of run names.
    pub fn name(self) -> &'static str {
        match self {
            Via::Pidfd => "pidfd",
            Via::Bpf => "bpf",
        }
    }
}

/// The suffix of the names of untuned runs.
pub const ALONE: &str = "alone";

/// One run.
#[derive(Debug, Clone)]
pub struct RunPlan {
    /// Its name in the document and for `--only`.
    pub name: String,
    /// The path.
    pub path: PathSpec,
    /// The servers' congestion control.
    pub congestion: &'static str,
    /// The client program.
    pub client: Client,
    /// The tuning mechanism; `None` if untuned.
    pub via: Option<Via>,
    /// Duration of the run.
    pub length: Duration,
    /// The times at which the path's rate changes, and the new rates.
    pub changes: Vec<(Duration, Rate)>,
    /// When a competing, untuned curl download begins.
    pub rival: Option<Duration>,
}

/// The initial rate of every path.
const START_RATE: Rate = Rate::from_mbit_per_second(100);

/// RTT of most runs' paths.
const RTT_SPEC: &str = "rtt=40ms";

/// All runs.
pub fn plans() -> Vec<RunPlan> {
    let mut all = Vec::new();
    let curl = Client::Curl(1);
    for (name, buffer, client, seconds) in [
        ("deep/curl", "1MB", curl, 13),
        ("small/curl", "125kB", curl, 13),
        ("deep/rsync", "1MB", Client::Rsync, 13),
        ("deep/iperf3", "1MB", Client::Iperf3(1), 13),
        ("five/curl", "1MB", Client::Curl(5), 13),
        ("upload/deep", "1MB", Client::Upload, 13),
        ("upload/small", "125kB", Client::Upload, 13),
    ] {
        all.extend(repeated(name, &path(buffer), client, seconds));
    }
    for (name, client) in [("change/curl", curl), ("upload/change", Client::Upload)] {
        let changes = vec![
            (Duration::from_secs(8), START_RATE.scaled(0.5)),
            (Duration::from_secs(16), START_RATE),
        ];
        let path = path("1MB");
        let runs = repeated(name, &path, client, 24).filter(|run| run.via.is_some());
        all.extend(runs.map(|run| RunPlan { changes: changes.clone(), ..run }));
    }
    all.extend(
        sides("hundred/iperf3", &path("1MB"), Client::Iperf3(100), 20)
            .filter(|run| run.via.is_some()),
    );
    for (name, buffer, first) in [("again/deep", "1MB", 8), ("again/small", "125kB", 20)] {
        let again = Client::Again(Duration::from_secs(first));
        all.extend(repeated(name, &path(buffer), again, first + REPEAT_SECONDS));
    }
    // At 200 ms, CUBIC takes eleven seconds to recover from a loss. The usual send buffer (4 MiB, which carries 2.65 MB) then
    // holds little more than the path's 2.5 MB.
    for (name, path, first) in [
        ("again/upload-small", path("125kB"), 15),
        ("again/upload-100-ms", "rtt=100ms buffer=312kB".to_owned(), 15),
        ("again/upload-long", "rtt=200ms buffer=625kB".to_owned(), 30),
    ] {
        let again = Client::UploadAgain(Duration::from_secs(first));
        all.extend(repeated(name, &path, again, first + REPEAT_SECONDS));
    }
    all.extend(conditions());
    all.extend(sent_by_bbr());
    all
}

/// The length of the second transfer of [`Client::Again`] and [`Client::UploadAgain`].
const REPEAT_SECONDS: u64 = 5;

/// Prefix of the names of [`conditions`].
pub const CONDITION: &str = "condition/";

/// Repetitions of the runs behind each median. Much is random: the time of a loss, whether slow start overflows a small buffer
/// and how long recovery takes, which of two flows fills the buffer first, the 4 slowest of 400 responses. Untuned and tuned
/// runs alternate, so that other load on the machine affects both.
const REPEATS: usize = 5;

/// Paths and programs where tuning can gain little and must not lose.
fn conditions() -> Vec<RunPlan> {
    let slow = Rate::from_mbit_per_second(32);
    let curl = Client::Curl(1);
    let mut all = Vec::new();
    for (name, path, client, seconds) in [
        ("slow-reader", path("1MB"), Client::SlowReader(slow), 8),
        ("slow-sender", path("1MB"), Client::SlowSender(slow), 8),
        ("loss-0.01", path("1MB loss=0.01%"), curl, 20),
        ("loss-0.1", path("1MB loss=0.1%"), curl, 13),
        ("tiny-buffer", path("25kB"), curl, 10),
        ("jitter", path("1MB jitter=4ms"), curl, 13),
        ("short-path", "rtt=2ms buffer=50kB".to_owned(), curl, 10),
        ("long-path", "rtt=200ms buffer=5MB".to_owned(), curl, 20),
        ("short-flow", path("1MB"), Client::Short(Bytes::new(5_000_000)), 8),
        ("10-MB", path("1MB"), Client::Short(Bytes::new(10_000_000)), 8),
        ("50-MB", path("1MB"), Client::Short(Bytes::new(50_000_000)), 15),
        ("rival", path("1MB"), curl, 20),
        ("upload-loss-0.1", path("1MB loss=0.1%"), Client::Upload, 13),
    ] {
        let rival = (name == "rival").then_some(Duration::from_secs(5));
        let name = format!("{CONDITION}{name}");
        let runs = repeated(&name, &path, client, seconds);
        all.extend(runs.map(|run| RunPlan { rival, ..run }));
    }
    all
}

/// Downloads from servers that use BBR.
fn sent_by_bbr() -> Vec<RunPlan> {
    let curl = Client::Curl(1);
    let short = |size| Client::Short(Bytes::new(size));
    let mut all = Vec::new();
    for (name, path, client, seconds) in [
        ("bbr-deep", path("1MB"), curl, 13),
        ("bbr-small", path("125kB"), curl, 13),
        ("bbr-loss-0.02", path("1MB loss=0.02%"), curl, 13),
        ("bbr-5-MB", path("1MB"), short(5_000_000), 8),
        ("bbr-10-MB", path("1MB"), short(10_000_000), 8),
        ("bbr-50-MB", path("1MB"), short(50_000_000), 15),
    ] {
        let name = format!("{CONDITION}{name}");
        let runs = repeated(&name, &path, client, seconds);
        all.extend(runs.map(|run| RunPlan { congestion: "bbr", ..run }));
    }
    all
}

/// Repeated runs of all sides; each repetition has its own seed of loss and jitter, the same for all sides.
fn repeated(name: &str, path: &str, client: Client, seconds: u64) -> impl Iterator<Item = RunPlan> {
    (1..=REPEATS).flat_map(move |repeat| {
        sides(name, &format!("{path} seed={repeat}"), client, seconds).map(
            move |run| match repeat {
                1 => run,
                _ => RunPlan { name: format!("{}/{repeat}", run.name), ..run },
            },
        )
    })
}

fn path(buffer: &str) -> String {
    format!("{RTT_SPEC} buffer={buffer}")
}

/// One untuned run, and one per tuning mechanism.
fn sides(
    name: &str,
    path: &str,
    client: Client,
    seconds: u64,
) -> impl Iterator<Item = RunPlan> + use<> {
    let words = format!("rate={}bit/s {path}", START_RATE.bits_per_second());
    // The paths are constants: `the_paths_can_be_read` checks that they parse.
    let path: PathSpec = words.parse().unwrap_or_else(|e| unreachable!("{words}: {e}"));
    let name = name.to_owned();
    [None, Some(Via::Pidfd), Some(Via::Bpf)].into_iter().map(move |via| RunPlan {
        name: format!("{name}/{}", via.map_or(ALONE, Via::name)),
        path: path.clone(),
        congestion: "cubic",
        client,
        via,
        length: Duration::from_secs(seconds),
        changes: Vec::new(),
        rival: None,
    })
}

impl Client {
    /// Whether the near side sends rather than receives.
    pub fn sends(self) -> bool {
        matches!(self, Client::Upload | Client::UploadAgain(_))
    }

    /// Whether it transfers a second time, over a path known by then.
    pub fn begins_again(self) -> bool {
        matches!(self, Client::Again(_) | Client::UploadAgain(_))
    }

    /// Its name in the document.
    pub fn name(self) -> String {
        match self {
            Client::Curl(1) => "curl".to_owned(),
            Client::Curl(n) => format!("{n} x curl"),
            Client::SlowReader(rate) => format!("curl reading at {rate}"),
            Client::SlowSender(rate) => format!("curl, nginx sending at {rate}"),
            Client::Short(size) => format!("curl of {size} at a time"),
            Client::Again(first) => format!("curl, again after {first}"),
            Client::Plain => "plain socket".to_owned(),
            Client::Rsync => "rsync".to_owned(),
            Client::Iperf3(1) => "iperf3".to_owned(),
            Client::Iperf3(n) => format!("iperf3, {n} connections"),
            Client::Upload => "iperf3 sending".to_owned(),
            Client::UploadAgain(first) => format!("iperf3 sending, again after {first}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_parse_and_names_are_unique() {
        let all = plans();
        assert!(all.iter().all(|plan| plan.path.rtt() > Duration::ZERO));
        let names: std::collections::BTreeSet<_> = all.iter().map(|plan| &plan.name).collect();
        assert_eq!(names.len(), all.len());
    }

    #[test]
    fn seeds_differ_between_repetitions_but_not_between_sides() {
        let seed = |name: &str| plans().iter().find(|p| p.name == name).unwrap().path.seed;
        let [first, second] = ["", "/2"].map(|repeat| {
            let [alone, pidfd, bpf] = [ALONE, "pidfd", "bpf"]
                .map(|side| seed(&format!("{CONDITION}loss-0.01/{side}{repeat}")));
            assert_eq!((alone, alone), (pidfd, bpf));
            alone
        });
        assert_ne!(first, second);
    }
}
