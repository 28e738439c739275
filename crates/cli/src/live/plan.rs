use sweetspot_path::PathSpec;
use sweetspot_units::{Duration, Rate};

/// A program that downloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// curl from nginx, so many at once.
    Curl(usize),
    /// rsync from an rsync daemon.
    Rsync,
    /// iperf3 in reverse, over so many connections.
    Iperf3(usize),
}

/// One run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Its name in the document and for `--only`.
    pub name: String,
    /// The path.
    pub path: PathSpec,
    /// Who downloads.
    pub client: Client,
    /// Whether it is tuned.
    pub tuned: bool,
    /// For how long.
    pub length: Duration,
    /// When the path's rate changes, and to what.
    pub changes: Vec<(Duration, Rate)>,
}

/// The rate at which every path begins.
const RATE: Rate = Rate::from_mbit_per_second(100);

/// All runs.
pub fn plans() -> Vec<Plan> {
    let mut all = Vec::new();
    for (client, name) in
        [(Client::Curl(1), "curl"), (Client::Rsync, "rsync"), (Client::Iperf3(1), "iperf3")]
    {
        all.extend(pair(&format!("deep/{name}"), "1MB", client, 20));
    }
    all.extend(pair("small/curl", "125kB", Client::Curl(1), 20));
    all.extend(pair("five/curl", "1MB", Client::Curl(5), 30));
    let [_, mut change] = pair("change/curl", "1MB", Client::Curl(1), 24);
    change.changes =
        vec![(Duration::from_secs(8), RATE.scaled(0.5)), (Duration::from_secs(16), RATE)];
    all.push(change);
    let [_, hundred] = pair("hundred/iperf3", "1MB", Client::Iperf3(100), 20);
    all.push(hundred);
    all
}

/// The same, left alone and tuned.
fn pair(name: &str, buffer: &str, client: Client, seconds: u64) -> [Plan; 2] {
    let words = format!("rate={}bit/s rtt=40ms buffer={buffer}", RATE.bits_per_second());
    [("alone", false), ("tuned", true)].map(|(suffix, tuned)| Plan {
        name: format!("{name}/{suffix}"),
        // A path of constants: `the_paths_can_be_read` keeps it readable.
        path: words.parse().unwrap_or_else(|e| unreachable!("{words}: {e}")),
        client,
        tuned,
        length: Duration::from_secs(seconds),
        changes: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paths_can_be_read() {
        assert!(plans().iter().all(|plan| plan.path.rtt() == Duration::from_millis(40)));
    }
}
