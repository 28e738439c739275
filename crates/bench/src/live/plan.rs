use sweetspot_path::PathSpec;
use sweetspot_units::{Bytes, Duration, Rate};

/// A program that moves data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// curl from nginx, this many at once.
    Curl(usize),
    /// curl that reads no faster than this.
    SlowReader(Rate),
    /// curl from an nginx that sends no faster than this.
    SlowSender(Rate),
    /// curl of files of this size, one after the other.
    Short(Bytes),
    /// rsync from an rsync daemon.
    Rsync,
    /// iperf3 in reverse, over so many connections.
    Iperf3(usize),
    /// iperf3 that sends.
    Upload,
}

/// One run.
#[derive(Debug, Clone)]
pub struct RunPlan {
    /// Its name in the document and for `--only`.
    pub name: String,
    /// The path.
    pub path: PathSpec,
    /// The servers' congestion control.
    pub congestion: &'static str,
    /// Who moves data.
    pub client: Client,
    /// Whether it is tuned.
    pub tuned: bool,
    /// For how long.
    pub length: Duration,
    /// When the path's rate changes, and to what.
    pub changes: Vec<(Duration, Rate)>,
    /// When another curl, left alone, begins to download beside it.
    pub rival: Option<Duration>,
}

/// The rate at which every path begins.
const START_RATE: Rate = Rate::from_mbit_per_second(100);

/// RTT of most runs' paths.
const RTT_SPEC: &str = "rtt=40ms";

/// All runs.
pub fn plans() -> Vec<RunPlan> {
    let mut all = Vec::new();
    all.extend(repeated("deep/curl", &path("1MB"), Client::Curl(1), 20, REPEATS));
    for (client, name) in [(Client::Rsync, "rsync"), (Client::Iperf3(1), "iperf3")] {
        all.extend(pair(&format!("deep/{name}"), &path("1MB"), client, 20));
    }
    all.extend(repeated("small/curl", &path("125kB"), Client::Curl(1), 20, REPEATS));
    all.extend(pair("five/curl", &path("1MB"), Client::Curl(5), 30));
    let [_, mut change] = pair("change/curl", &path("1MB"), Client::Curl(1), 24);
    change.changes = vec![
        (Duration::from_secs(8), START_RATE.scaled(0.5)),
        (Duration::from_secs(16), START_RATE),
    ];
    all.push(change);
    let [_, hundred] = pair("hundred/iperf3", &path("1MB"), Client::Iperf3(100), 20);
    all.push(hundred);
    all.extend(uploads());
    all.extend(conditions());
    all.extend(sent_by_bbr());
    all
}

/// Uploads under `tune --send`.
fn uploads() -> Vec<RunPlan> {
    let mut all = Vec::new();
    all.extend(repeated("upload/deep", &path("1MB"), Client::Upload, 20, REPEATS));
    all.extend(pair("upload/small", &path("125kB"), Client::Upload, 20));
    let [_, mut change] = pair("upload/change", &path("1MB"), Client::Upload, 24);
    change.changes = vec![
        (Duration::from_secs(8), START_RATE.scaled(0.5)),
        (Duration::from_secs(16), START_RATE),
    ];
    all.push(change);
    all
}

/// Prefix of the names of [`conditions`].
pub const CONDITION: &str = "condition/";

/// Number of repetitions of runs with a large random part: when a loss falls, whether slow start
/// overflows a small buffer and how long recovery takes, which of two flows fills the buffer first,
/// which 4 of 400 responses are the slowest. Untuned and tuned runs alternate, so that other load
/// on the machine affects both; medians are compared.
const REPEATS: usize = 3;

/// Paths and programs under which tuning can gain little and must not lose.
fn conditions() -> Vec<RunPlan> {
    let slow = Rate::from_mbit_per_second(32);
    let curl = Client::Curl(1);
    let mut all = Vec::new();
    for (name, path, client, seconds, repeats) in [
        ("slow-reader", path("1MB"), Client::SlowReader(slow), 10, REPEATS),
        ("slow-sender", path("1MB"), Client::SlowSender(slow), 10, 1),
        ("loss-0.01", path("1MB loss=0.01%"), curl, 40, REPEATS),
        ("loss-0.1", path("1MB loss=0.1%"), curl, 25, REPEATS),
        ("tiny-buffer", path("25kB"), curl, 20, 1),
        ("jitter", path("1MB jitter=4ms"), curl, 15, REPEATS),
        ("short-path", "rtt=2ms buffer=50kB".to_owned(), curl, 20, 1),
        ("long-path", "rtt=200ms buffer=5MB".to_owned(), curl, 30, 1),
        ("short-flow", path("1MB"), Client::Short(Bytes::new(5_000_000)), 20, REPEATS),
        ("10-MB", path("1MB"), Client::Short(Bytes::new(10_000_000)), 20, REPEATS),
        ("50-MB", path("1MB"), Client::Short(Bytes::new(50_000_000)), 24, REPEATS),
        ("rival", path("1MB"), curl, 30, REPEATS),
        ("upload-loss-0.1", path("1MB loss=0.1%"), Client::Upload, 25, REPEATS),
    ] {
        let rival = (name == "rival").then_some(Duration::from_secs(5));
        let name = format!("{CONDITION}{name}");
        let runs = repeated(&name, &path, client, seconds, repeats);
        all.extend(runs.map(|run| RunPlan { rival, ..run }));
    }
    all
}

/// Downloads from servers that send by BBR.
fn sent_by_bbr() -> Vec<RunPlan> {
    let curl = Client::Curl(1);
    let short = |size| Client::Short(Bytes::new(size));
    let mut all = Vec::new();
    for (name, path, client, seconds) in [
        ("bbr-deep", path("1MB"), curl, 15),
        ("bbr-small", path("125kB"), curl, 15),
        ("bbr-loss-0.02", path("1MB loss=0.02%"), curl, 15),
        ("bbr-5-MB", path("1MB"), short(5_000_000), 15),
        ("bbr-10-MB", path("1MB"), short(10_000_000), 15),
        ("bbr-50-MB", path("1MB"), short(50_000_000), 24),
    ] {
        let name = format!("{CONDITION}{name}");
        let runs = repeated(&name, &path, client, seconds, REPEATS);
        all.extend(runs.map(|run| RunPlan { congestion: "bbr", ..run }));
    }
    all
}

/// A pair of runs, repeated; each repetition has another seed of loss and jitter, the same for both
/// of a pair.
fn repeated(
    name: &str,
    path: &str,
    client: Client,
    seconds: u64,
    repeats: usize,
) -> impl Iterator<Item = RunPlan> {
    (1..=repeats).flat_map(move |repeat| {
        pair(name, &format!("{path} seed={repeat}"), client, seconds).map(|run| match repeat {
            1 => run,
            _ => RunPlan { name: format!("{}/{repeat}", run.name), ..run },
        })
    })
}

fn path(buffer: &str) -> String {
    format!("{RTT_SPEC} buffer={buffer}")
}

/// One run untuned and one tuned.
fn pair(name: &str, path: &str, client: Client, seconds: u64) -> [RunPlan; 2] {
    let words = format!("rate={}bit/s {path}", START_RATE.bits_per_second());
    [("alone", false), ("tuned", true)].map(|(suffix, tuned)| RunPlan {
        name: format!("{name}/{suffix}"),
        // A path of constants: `the_paths_can_be_read` keeps it readable.
        path: words.parse().unwrap_or_else(|e| unreachable!("{words}: {e}")),
        congestion: "cubic",
        client,
        tuned,
        length: Duration::from_secs(seconds),
        changes: Vec::new(),
        rival: None,
    })
}

impl Client {
    /// Whether it sends rather than receives.
    pub fn sends(self) -> bool {
        self == Client::Upload
    }

    /// How it is called in the document.
    pub fn name(self) -> String {
        match self {
            Client::Curl(1) => "curl".to_owned(),
            Client::Curl(n) => format!("{n} x curl"),
            Client::SlowReader(rate) => format!("curl reading at {rate}"),
            Client::SlowSender(rate) => format!("curl, nginx sending at {rate}"),
            Client::Short(size) => format!("curl of {size} at a time"),
            Client::Rsync => "rsync".to_owned(),
            Client::Iperf3(1) => "iperf3".to_owned(),
            Client::Iperf3(n) => format!("iperf3, {n} connections"),
            Client::Upload => "iperf3 sending".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paths_can_be_read_and_no_name_stands_twice() {
        let all = plans();
        assert!(all.iter().all(|plan| plan.path.rtt() > Duration::ZERO));
        let names: std::collections::BTreeSet<_> = all.iter().map(|plan| &plan.name).collect();
        assert_eq!(names.len(), all.len());
    }

    #[test]
    fn repetitions_differ_in_what_is_lost_and_the_two_of_a_pair_do_not() {
        let seed = |name: &str| plans().iter().find(|p| p.name == name).unwrap().path.seed;
        let [first, second] = ["", "/2"].map(|repeat| {
            let [alone, tuned] = ["alone", "tuned"]
                .map(|side| seed(&format!("{CONDITION}loss-0.01/{side}{repeat}")));
            assert_eq!(alone, tuned);
            alone
        });
        assert_ne!(first, second);
    }
}
