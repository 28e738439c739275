//! The verbs that may run for longer than a second.

/// A verb's standard output.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Output {
    /// The verb's only purpose: it ends when nobody reads its output.
    Product,
    /// Additional output, such as a ticket, or the output of another command.
    Aside,
}

/// A verb, its command line, and a sign that it is at work.
#[derive(Debug)]
pub struct Verb {
    pub name: &'static str,
    /// `{scratch}`, `{ticket}` (of a silent peer), `{process}` and `{scenarios}` are replaced.
    pub arguments: &'static [&'static str],
    pub output: Output,
    /// Whether the verb holds signals back in order to clean up.
    pub holds_signals: bool,
    /// A program that it starts.
    pub starts: Option<&'static str>,
    /// Whether a command started by the verb continues when the verb is killed.
    pub leaves_command: bool,
    pub needs_terminal: bool,
    /// Whether it is a verb of `sweetspot-research`.
    pub is_research: bool,
}

const fn aside(name: &'static str, arguments: &'static [&'static str]) -> Verb {
    Verb {
        name,
        arguments,
        output: Output::Aside,
        holds_signals: false,
        starts: None,
        leaves_command: false,
        needs_terminal: false,
        is_research: false,
    }
}

const fn product(name: &'static str, arguments: &'static [&'static str]) -> Verb {
    Verb { output: Output::Product, ..aside(name, arguments) }
}

const fn holding(verb: Verb) -> Verb {
    Verb { holds_signals: true, ..verb }
}

const fn starting(program: &'static str, verb: Verb) -> Verb {
    Verb { starts: Some(program), ..holding(verb) }
}

const fn research(verb: Verb) -> Verb {
    Verb { is_research: true, ..verb }
}

const LISTEN: &str = "--listen=127.0.0.1:0";
const ELEPHANTS: &str = "{scenarios}/elephants.toml";
/// Long enough for every cause, in simulated time.
const LONG: &str = "--set=duration=1000000s";

pub const VERBS: &[Verb] = &[
    holding(aside("serve", &["serve", "--dir", "{scratch}", LISTEN])),
    holding(aside(
        "serve --clients",
        &["serve", "--clients", "{scratch}/clients", "--state", "{scratch}", LISTEN],
    )),
    holding(product("serve --stdout", &["serve", "--stdout", LISTEN])),
    holding(aside("send that offers", &["send", "{scratch}/file", LISTEN])),
    aside("send", &["send", "{scratch}/file", "{ticket}"]),
    aside("receive", &["receive", "{ticket}", "{scratch}/got"]),
    // This ssh never answers.
    Verb {
        starts: Some("sleep"),
        ..aside("copy", &["copy", "{scratch}/file", "host:", "--ssh", "sleep 1000 #"])
    },
    product("endpoint", &["endpoint"]),
    product("measure", &["measure", "{ticket}"]),
    product(
        "measure --watch",
        &["measure", "{ticket}", "--watch", "10min", "--series", "{scratch}/series.jsonl"],
    ),
    product("measure --quick", &["measure", "--quick", "{ticket}"]),
    Verb {
        leaves_command: true,
        ..starting(
            "sleep",
            aside("tune run", &["tune", "run", "--via=pidfd", "--", "sleep", "1000"]),
        )
    },
    holding(aside("tune attach", &["tune", "attach", "--via=pidfd", "{process}"])),
    holding(aside(
        "tune daemon",
        &["tune", "daemon", "--via=pidfd", "--policy", "{scratch}/policy.toml"],
    )),
    starting(
        "sleep",
        aside(
            "emulate",
            &["emulate", "--path=rate=10Mbit/s rtt=10ms buffer=50kB", "--", "sleep", "1000"],
        ),
    ),
    holding(product("emulate --self-test", &["emulate", "--self-test"])),
    holding(product("demo", &["demo", "--size", "10GB", "--out", "{scratch}/demo"])),
    Verb { needs_terminal: true, ..holding(product("top", &["top"])) },
    product("top --json", &["top", "--json"]),
    product("top --json, seldom", &["top", "--json", "--interval", "10min"]),
    holding(product("diagnose --follow", &["diagnose", "--follow", "any"])),
    product("diagnose -", &["diagnose", "-"]),
    product("run", &["run", ELEPHANTS, LONG]),
    holding(product("run --engine lab", &["run", ELEPHANTS, "--engine", "lab"])),
    product("sweep --find-best", &["sweep", ELEPHANTS, "--find-best", LONG]),
    holding(product("sweep", &["sweep", ELEPHANTS, "--over=path.buffer=100pkt,313pkt", LONG])),
    research(holding(product("lab blog", &["lab", "blog", "--out", "{scratch}/blog.md"]))),
    research(product("validate", &["validate", ELEPHANTS, "--engine=sim,theory", LONG])),
    research(holding(product(
        "gauntlet",
        &["gauntlet", "--seed=7", "--paths=300", "--sizing=sobas"],
    ))),
    research(holding(product("reproduce", &["reproduce", "all", "--out", "{scratch}/figures"]))),
    holding(aside("ui", &["ui"])),
    holding(aside("ui --watch", &["ui", "--watch", "{scratch}/log.jsonl"])),
];
