use sweetspot_units::Duration;

/// A published test: a scenario and its variations.
#[derive(Debug, Clone, Copy)]
pub struct MatrixTest {
    /// Its file's name in scenarios/matrix, without `.toml`.
    pub name: &'static str,
    /// The purpose of the test, in a sentence.
    pub title: &'static str,
    /// The publication it comes from.
    pub source: &'static str,
    pub(super) text: &'static str,
    /// The varied quantity: the pictures' x axis.
    pub x: &'static str,
    /// Whether the x axis is logarithmic.
    pub logarithmic: bool,
    /// Number of runs per case, each with its own seed and its own start time of the flows under test; otherwise a test
    /// without randomness would have only one outcome.
    pub runs: u64,
    /// The cases.
    pub cases: &'static [MatrixCase],
}

/// One case of a test.
#[derive(Debug, Clone, Copy)]
pub struct MatrixCase {
    /// Its name in tables.
    pub name: &'static str,
    /// Its position on the x axis.
    pub x: f64,
    /// The scenario keys that differ.
    pub(super) set: &'static [&'static str],
    /// The flows under test.
    pub tested: Tested,
}

/// Which flows of a scenario are under test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tested {
    /// The last transfer.
    Last,
    /// `flows` flows like the last transfer, started one after the other.
    Alike {
        /// Number of flows.
        flows: u64,
        /// Time between their starts.
        every: Duration,
    },
}

const NSPERF: &str = "google/bbr, branch v3, gtests/net/tcp/bbr/nsperf/run_tests.sh";
const SUITE: &str = "draft-irtf-iccrg-tcpeval-01";

const fn last(name: &'static str, x: f64, set: &'static [&'static str]) -> MatrixCase {
    MatrixCase { name, x, set, tested: Tested::Last }
}

const fn alike(
    name: &'static str,
    x: f64,
    set: &'static [&'static str],
    flows: u64,
    every_ms: u64,
) -> MatrixCase {
    let every = Duration::from_millis(every_ms);
    MatrixCase { name, x, set, tested: Tested::Alike { flows, every } }
}

/// All tests.
pub const MATRIX: [MatrixTest; 6] = [
    MatrixTest {
        name: "coexist",
        title: "A flow that joins an established cubic flow",
        source: NSPERF,
        text: include_str!("../../scenarios/matrix/coexist.toml"),
        x: "buffer, BDP",
        logarithmic: true,
        runs: 24,
        cases: &[
            last("0.1 BDP", 0.1, &["path.buffer=12pkt"]),
            last("1 BDP", 1.0, &["path.buffer=123pkt"]),
            last("2 BDP", 2.0, &["path.buffer=247pkt"]),
            last("4 BDP", 4.0, &["path.buffer=495pkt"]),
            last("8 BDP", 8.0, &["path.buffer=990pkt"]),
            last("16 BDP", 16.0, &["path.buffer=1981pkt"]),
        ],
    },
    MatrixTest {
        name: "random-loss",
        title: "A single flow on a path with random loss",
        source: NSPERF,
        text: include_str!("../../scenarios/matrix/random-loss.toml"),
        x: "loss, %",
        logarithmic: true,
        runs: 8,
        cases: &[
            last("0.00001 %", 0.00001, &["path.loss=0.0000001"]),
            last("0.0001 %", 0.0001, &["path.loss=0.000001"]),
            last("0.001 %", 0.001, &["path.loss=0.00001"]),
            last("0.01 %", 0.01, &["path.loss=0.0001"]),
            last("0.1 %", 0.1, &["path.loss=0.001"]),
            last("0.2 %", 0.2, &["path.loss=0.002"]),
            last("0.5 %", 0.5, &["path.loss=0.005"]),
            last("1 %", 1.0, &["path.loss=0.01"]),
            last("2 %", 2.0, &["path.loss=0.02"]),
            last("3 %", 3.0, &["path.loss=0.03"]),
            last("10 %", 10.0, &["path.loss=0.1"]),
            last("15 %", 15.0, &["path.loss=0.15"]),
            last("20 %", 20.0, &["path.loss=0.2"]),
        ],
    },
    MatrixTest {
        name: "shallow",
        title: "Identical flows behind a buffer of 2 ms",
        source: NSPERF,
        text: include_str!("../../scenarios/matrix/shallow.toml"),
        x: "flows",
        logarithmic: true,
        runs: 1,
        cases: &[
            alike("1 flow", 1.0, &[], 1, 139),
            alike("10 flows", 10.0, &[], 10, 139),
            alike("30 flows", 30.0, &[], 30, 139),
            alike("60 flows", 60.0, &[], 60, 139),
            alike("100 flows", 100.0, &[], 100, 139),
        ],
    },
    MatrixTest {
        name: "bufferbloat",
        title: "Two identical flows behind a deep buffer",
        source: NSPERF,
        text: include_str!("../../scenarios/matrix/bufferbloat.toml"),
        x: "buffer, BDP",
        logarithmic: true,
        runs: 8,
        cases: &[
            alike("1 BDP", 1.0, &["path.buffer=123pkt"], 2, 2000),
            alike("10 BDP", 10.0, &["path.buffer=1238pkt"], 2, 2000),
            alike("50 BDP", 50.0, &["path.buffer=6192pkt"], 2, 2000),
            alike("100 BDP", 100.0, &["path.buffer=12384pkt"], 2, 2000),
        ],
    },
    MatrixTest {
        name: "access-link",
        title: "A transfer in competition with file downloads, on an institution's access link",
        source: SUITE,
        text: include_str!("../../scenarios/matrix/access-link.toml"),
        x: "users",
        logarithmic: false,
        runs: 8,
        cases: &[
            last("30 users", 30.0, &["cross.0.users=30"]),
            last("60 users", 60.0, &[]),
            last("90 users", 90.0, &["cross.0.users=90"]),
        ],
    },
    MatrixTest {
        name: "trans-oceanic",
        title: "A transfer in competition with file downloads, across an ocean",
        source: SUITE,
        text: include_str!("../../scenarios/matrix/trans-oceanic.toml"),
        x: "users",
        logarithmic: false,
        runs: 4,
        cases: &[last("600 users", 600.0, &[])],
    },
];
