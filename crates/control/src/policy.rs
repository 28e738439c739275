//! Policies: the connections of a host to tune, and their goals. They are written in TOML.

mod cgroups;
mod matched;
mod peers;
mod written;

use std::net::SocketAddr;
use std::ops::RangeInclusive;

use sweetspot_units::{Bytes, UnitError};
use thiserror::Error;

pub use cgroups::Cgroups;
pub use matched::{MatchedRule, ShadowedRule};
pub use peers::Peers;
pub use written::{is_loopback_host, loopback};

use crate::goal::Goal;
use crate::{CongestionName, CongestionNameError};
use written::MIN_MEMORY;

/// The length of a process name that the kernel keeps (TASK_COMM_LEN without the terminating zero).
pub const PROGRAM_NAME_BYTES: usize = 15;

/// Why a policy is rejected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PolicyError {
    /// The text is not TOML, or has an unknown key.
    #[error("line {line}: {message}")]
    Syntax {
        /// The line number, from 1.
        line: usize,
        /// The parser's message.
        message: String,
    },
    /// A value is not allowed.
    #[error("line {line}: {key} = {given}: {reason}")]
    Value {
        /// The line number, from 1.
        line: usize,
        /// The key.
        key: &'static str,
        /// The value as TOML.
        given: String,
        /// The reason, with the values allowed.
        #[source]
        reason: ValueError,
    },
    /// A rule has no goal.
    #[error(
        "line {line}: the rule has no goal; add goal = \"throughput\", \"less-than-best-effort\" or \"leave\""
    )]
    NoGoal {
        /// The line number, from 1.
        line: usize,
    },
    /// The policy has no rule.
    #[error("it has no [[rule]]; add one, such as [[rule]] with goal = \"throughput\"")]
    NoRule,
}

/// Why a policy's value is not allowed, and the values allowed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ValueError {
    /// A list is expected.
    #[error("write a list: [...]")]
    List,
    /// A size is expected as a string.
    #[error("write a size in quotes, such as \"256MB\"")]
    UnquotedSize,
    /// The string is not a size.
    #[error("{0}")]
    Size(#[source] Box<UnitError>),
    /// The memory is too small for one window.
    #[error(
        "it is too small for a window; the minimum is {MIN_MEMORY}, \"256MB\" is typical, and without the key there is no \
         limit"
    )]
    TooLittleMemory,
    /// A boolean is expected.
    #[error("write true or false")]
    Flag,
    /// The metrics address is not a loopback address.
    #[error("metrics are for this host only; write it like 127.0.0.1:PORT")]
    NotLoopback,
    /// An address and a port are expected.
    #[error("expected a loopback address and a port; write it like 127.0.0.1:PORT")]
    Address,
    /// A goal is expected.
    #[error("expected \"throughput\", \"less-than-best-effort\" or \"leave\"")]
    Goal,
    /// A congestion control was given for connections that are left alone.
    #[error("goal = \"leave\" and congestion exclude each other; remove one of the two")]
    CongestionLeftAlone,
    /// The name of a congestion control is expected.
    #[error("{0}")]
    Congestion(#[from] CongestionNameError),
    /// The name of a program is expected.
    #[error("write a program's name without its path, such as \"curl\"")]
    Program,
    /// A user is expected.
    #[error("write a user's name, or the number that id -u prints")]
    User,
    /// The user does not exist.
    #[error("there is no such user; give the number that id -u prints")]
    NoSuchUser,
    /// A port or a range of ports is expected.
    #[error("write a port like 443, or a range like \"8000-8999\" with the lower port first")]
    Ports,
    /// An address or a prefix is expected.
    #[error("write it like \"10.0.0.0/8\", \"2001:db8::/32\" or \"192.0.2.7\"")]
    Peers,
    /// A pattern of cgroups is expected.
    #[error("write a path like \"system.slice/nginx.service\" or \"system.slice/docker-*.scope\"")]
    Cgroup,
}

/// Which connections are tuned, and for which goal. The first rule that matches a connection applies.
///
/// ```
/// use sweetspot_control::Goal;
/// use sweetspot_control::policy::{Policy, Subject};
///
/// let text = "[[rule]]\nusers = [\"backup\"]\ngoal = \"less-than-best-effort\"";
/// let policy = Policy::parse(text, &|name| (name == "backup").then_some(34))?;
/// let (local, remote) = ("192.0.2.1:50000".parse()?, "192.0.2.7:443".parse()?);
/// let goal = |uid| policy.goal(&Subject { pid: 0, uid, program: "restic", cgroup: "", local, remote });
/// assert_eq!(goal(34), Some(Goal::LessThanBestEffort));
/// assert_eq!(goal(1000), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// The limit on the sum of all windows; `None`: no limit.
    pub memory: Option<Bytes>,
    /// Whether decisions are only reported, not applied.
    pub dry_run: bool,
    /// The loopback address at which metrics are served, if any.
    pub metrics: Option<SocketAddr>,
    rules: Vec<PolicyRule>,
}

/// The input of a policy's rules: a connection and its owner.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The process ID; 0 if unknown.
    pub pid: u32,
    /// The process's user ID.
    pub uid: u32,
    /// The process's name, at most [`PROGRAM_NAME_BYTES`] long.
    pub program: &'a str,
    /// The path of the process's cgroup; empty if unknown.
    pub cgroup: &'a str,
    /// The local address.
    pub local: SocketAddr,
    /// The remote address.
    pub remote: SocketAddr,
}

#[derive(Debug, Clone, PartialEq)]
struct PolicyRule {
    line: usize,
    users: Vec<u32>,
    programs: Vec<String>,
    ports: Vec<RangeInclusive<u16>>,
    peers: Vec<Peers>,
    cgroups: Vec<Cgroups>,
    goal: Option<Goal>,
    congestion: Option<CongestionName>,
}

/// Whether each of `later` is within one of `earlier`. An empty list stands for all values.
fn include<T>(earlier: &[T], later: &[T], includes: impl Fn(&T, &T) -> bool) -> bool {
    let is_within = |value| earlier.iter().any(|each| includes(each, value));
    earlier.is_empty() || !later.is_empty() && later.iter().all(is_within)
}

impl PolicyRule {
    /// Whether it surely matches each connection that `later` matches.
    fn includes(&self, later: &PolicyRule) -> bool {
        let ports = |a: &RangeInclusive<u16>, b: &RangeInclusive<u16>| {
            a.contains(b.start()) && a.contains(b.end())
        };
        include(&self.users, &later.users, u32::eq)
            && include(&self.programs, &later.programs, String::eq)
            && include(&self.ports, &later.ports, ports)
            && include(&self.cgroups, &later.cgroups, Cgroups::include)
            && include(&self.peers, &later.peers, Peers::include)
    }

    fn has_no_keys(&self) -> bool {
        self.users.is_empty()
            && self.programs.is_empty()
            && self.ports.is_empty()
            && self.cgroups.is_empty()
            && self.peers.is_empty()
    }

    /// Whether the rule matches. An empty list matches everything.
    fn covers(&self, subject: &Subject<'_>) -> bool {
        let port = |range: &RangeInclusive<u16>| {
            range.contains(&subject.remote.port()) || range.contains(&subject.local.port())
        };
        (self.users.is_empty() || self.users.contains(&subject.uid))
            && (self.programs.is_empty() || self.programs.iter().any(|p| p == subject.program))
            && (self.ports.is_empty() || self.ports.iter().any(port))
            && (self.cgroups.is_empty() || self.cgroups.iter().any(|c| c.contain(subject.cgroup)))
            && (self.peers.is_empty() || self.peers.iter().any(|p| p.contain(subject.remote.ip())))
    }
}

impl Policy {
    /// The number of rules.
    pub fn rules(&self) -> usize {
        self.rules.len()
    }

    /// The goal of a connection, by the first rule that matches; `None`: leave it alone.
    pub fn goal(&self, subject: &Subject<'_>) -> Option<Goal> {
        self.rule(subject)?.1.goal
    }

    /// The congestion control that the same rule chooses for a connection; `None`: leave its own.
    pub fn congestion(&self, subject: &Subject<'_>) -> Option<CongestionName> {
        self.rule(subject)?.1.congestion
    }

    /// The congestion controls that rules name.
    pub fn congestion_names(&self) -> impl Iterator<Item = CongestionName> {
        self.rules.iter().filter_map(|rule| rule.congestion)
    }

    /// The first rule that matches a connection, if one does.
    pub fn matched(&self, subject: &Subject<'_>) -> Option<MatchedRule> {
        let (index, rule) = self.rule(subject)?;
        Some(MatchedRule { number: index + 1, line: rule.line, goal: rule.goal })
    }

    /// The rules that can never match, each with the first earlier rule that matches all of its connections.
    pub fn shadowed(&self) -> Vec<ShadowedRule> {
        let shadow = |(place, rule): (usize, &PolicyRule)| {
            let by = self.rules[..place].iter().find(|earlier| earlier.includes(rule))?;
            Some(ShadowedRule { line: rule.line, by: by.line, by_all: by.has_no_keys() })
        };
        self.rules.iter().enumerate().filter_map(shadow).collect()
    }

    fn rule(&self, subject: &Subject<'_>) -> Option<(usize, &PolicyRule)> {
        self.rules.iter().enumerate().find(|(_, rule)| rule.covers(subject))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Policy, PolicyError> {
        Policy::parse(text, &|name| (name == "root").then_some(0))
    }

    #[test]
    fn only_loopback_addresses_and_localhost_are_loopback_hosts() {
        for own in [
            "127.0.0.1:9477",
            "127.0.0.1",
            "127.9.9.9:1",
            "localhost:80",
            "LOCALHOST",
            "[::1]:9",
            "[::1]",
        ] {
            assert!(is_loopback_host(own), "{own}");
        }
        for foreign in [
            "",
            ":9477",
            "evil.example",
            "evil.example:9477",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "localhost@evil.example",
            "192.0.2.1:9477",
            "0.0.0.0:9477",
            "[::]:1",
            "[::1",
            "::1",
            "127.0.0.1:80:evil",
        ] {
            assert!(!is_loopback_host(foreign), "{foreign}");
        }
    }

    fn subject<'a>(program: &'a str, remote: &str) -> Subject<'a> {
        let local = "192.0.2.1:50000".parse().unwrap();
        Subject { pid: 0, uid: 1000, program, cgroup: "", local, remote: remote.parse().unwrap() }
    }

    #[test]
    fn the_first_matching_rule_decides() {
        let policy = parse(
            r#"
            memory = "64MB"
            metrics = "127.0.0.1:9477"
            [[rule]]
            programs = ["ssh"]
            goal = "leave"
            [[rule]]
            users = [1000, "root"]
            ports = [443, "8000-8999"]
            peers = ["10.0.0.0/8", "2001:db8::/32"]
            goal = "less-than-best-effort"
            [[rule]]
            programs = ["curl"]
            goal = "throughput"
        "#,
        )
        .unwrap();
        let goal = |program, remote| policy.goal(&subject(program, remote));
        assert_eq!(goal("ssh", "10.1.2.3:443"), None);
        assert_eq!(goal("curl", "10.1.2.3:443"), Some(Goal::LessThanBestEffort));
        assert_eq!(goal("restic", "10.1.2.3:8999"), Some(Goal::LessThanBestEffort));
        assert_eq!(goal("curl", "10.1.2.3:9000"), Some(Goal::Throughput));
        assert_eq!(goal("curl", "11.1.2.3:443"), Some(Goal::Throughput));
        assert_eq!(goal("wget", "11.1.2.3:443"), None);
        assert_eq!(policy.memory, Some(Bytes::new(64_000_000)));
    }

    #[test]
    fn the_packaged_policy_parses() {
        let policy = parse(include_str!("../../../packaging/policy.toml")).unwrap();
        let goal = |program| policy.goal(&subject(program, "192.0.2.7:443"));
        assert_eq!(goal("restic"), Some(Goal::LessThanBestEffort));
        assert_eq!(goal("curl"), Some(Goal::Throughput));
        assert_eq!(goal("sshd"), None);
    }

    #[test]
    fn rules_match_by_cgroup() {
        let text = "[[rule]]\ncgroups = [\"system.slice/docker-*.scope\"]\ngoal = \"throughput\"";
        let policy = parse(text).unwrap();
        let goal = |cgroup| policy.goal(&Subject { cgroup, ..subject("curl", "192.0.2.7:443") });
        assert_eq!(goal("system.slice/docker-4f2.scope"), Some(Goal::Throughput));
        assert_eq!(goal("user.slice"), None);
        assert_eq!(goal(""), None);
    }

    #[test]
    fn a_rule_sets_the_congestion_control_of_its_connections() {
        let text = "[[rule]]\nports = [873]\ngoal = \"throughput\"\ncongestion = \"bbr\"\n\
                    [[rule]]\ngoal = \"throughput\"";
        let policy = parse(text).unwrap();
        let named = |remote| policy.congestion(&subject("rsync", remote));
        assert_eq!(named("192.0.2.7:873"), Some("bbr".parse().unwrap()));
        assert_eq!(named("192.0.2.7:443"), None);
        assert_eq!(policy.congestion_names().count(), 1);
    }

    #[test]
    fn a_match_reports_the_rules_number_line_and_goal() {
        let text = "# Rules\n[[rule]]\nports = [873]\ngoal = \"leave\"\n\n[[rule]]\n\
                    ports = [443]\ngoal = \"less-than-best-effort\"";
        let policy = parse(text).unwrap();
        let matched = |remote| policy.matched(&subject("curl", remote)).map(|it| it.to_string());
        assert_eq!(matched("192.0.2.7:873").unwrap(), "rule 1, line 2: leave");
        assert_eq!(matched("192.0.2.7:443").unwrap(), "rule 2, line 6: less-than-best-effort");
        assert_eq!(matched("192.0.2.7:80"), None);
        let rule = policy.matched(&subject("curl", "192.0.2.7:873")).unwrap();
        let expected = serde_json::json!({ "number": 1, "line": 2, "goal": "leave" });
        assert_eq!(serde_json::to_value(rule).unwrap(), expected);
    }

    #[test]
    fn a_rule_is_shadowed_if_an_earlier_one_matches_all_of_its_connections() {
        let shadowed = |earlier: &str, later: &str| {
            let rule = |keys| format!("[[rule]]\ngoal = \"throughput\"\n{keys}\n");
            parse(&(rule(earlier) + &rule(later))).unwrap().shadowed()
        };
        let words = |rules: Vec<ShadowedRule>| rules[0].to_string();
        let all = words(shadowed("", "users = [7]"));
        assert_eq!(all, "line 4: never reached: the rule at line 1 matches everything");
        let some = words(shadowed("users = [7]", "users = [7]\nports = [1]"));
        assert_eq!(
            some,
            "line 4: never reached: the rule at line 1 matches all of its connections"
        );
        for (earlier, later, is_shadowed) in [
            ("users = [7]", "", false),
            ("users = [7, 8]", "users = [8]", true),
            ("users = [8]", "users = [7, 8]", false),
            ("programs = [\"curl\"]", "programs = [\"wget\"]", false),
            ("ports = [\"80-443\"]", "ports = [100, \"200-443\"]", true),
            ("ports = [\"80-443\"]", "ports = [\"400-500\"]", false),
            ("ports = [80]\nusers = [7]", "ports = [80]", false),
            ("peers = [\"10.0.0.0/8\"]", "peers = [\"10.1.0.0/16\"]", true),
            ("peers = [\"10.1.0.0/16\"]", "peers = [\"10.0.0.0/8\"]", false),
            ("peers = [\"0.0.0.0/0\"]", "peers = [\"::/0\"]", false),
            ("cgroups = [\"a.slice\"]", "cgroups = [\"a.slice/b.service\"]", true),
            ("cgroups = [\"a.slice/b.service\"]", "cgroups = [\"a.slice\"]", false),
            ("cgroups = [\"d-*.scope\"]", "cgroups = [\"d-4*.scope\"]", true),
            ("cgroups = [\"d-4*.scope\"]", "cgroups = [\"d-*.scope\"]", false),
        ] {
            assert_eq!(!shadowed(earlier, later).is_empty(), is_shadowed, "{earlier}: {later}");
        }
    }

    #[test]
    fn a_program_matches_by_its_name_cut_to_15_bytes() {
        // The name has 16 bytes; the kernel keeps 15.
        let text = "[[rule]]\nprograms = [\"git-remote-https\"]\ngoal = \"throughput\"";
        let policy = parse(text).unwrap();
        let goal = |program| policy.goal(&subject(program, "192.0.2.7:443"));
        assert_eq!(goal("git-remote-http"), Some(Goal::Throughput));
        assert_eq!(goal("git-remote-htt"), None);
    }

    #[test]
    fn policy_errors_give_the_line_and_the_accepted_values() {
        let complaint = |text: &str| parse(text).unwrap_err().to_string();
        assert!(complaint("").starts_with("it has no [[rule]]"));
        let rule = "[[rule]]\ngoal = \"throughput\"\n";
        for (lines, start, next_step) in [
            ("gaol = 1", "line 3: unknown key `gaol`; the keys are", "`goal`"),
            ("ports = [\"9-1\"]", "line 3: ports = \"9-1\": ", "8000-8999"),
            ("ports = [70000]", "line 3: ports = 70000: ", "8000-8999"),
            ("ports = [-1]", "line 3: ports = -1: ", "8000-8999"),
            ("\nports = 443", "line 4: ports = 443: ", "[...]"),
            ("users = [\"no-such-user\"]", "line 3: users = \"no-such-user\": ", "id -u"),
            ("users = [true]", "line 3: users = true: ", "id -u"),
            ("programs = [1]", "line 3: programs = 1: ", "curl"),
            ("programs = [\"/usr/bin/curl\"]", "line 3: programs = ", "\"curl\""),
            ("cgroups = [\"/\"]", "line 3: cgroups = \"/\": ", "nginx.service"),
            ("congestion = 7", "line 3: congestion = 7: ", "\"bbr\""),
            ("congestion = \"b b\"", "line 3: congestion = \"b b\": ", "\"bbr\""),
            ("peers = [\"10.0.0.0/33\"]", "line 3: peers = \"10.0.0.0/33\": ", "10.0.0.0/8"),
        ] {
            let said = complaint(&(rule.to_owned() + lines));
            assert!(said.starts_with(start) && said.contains(next_step), "{said}");
            assert_eq!(said.lines().count(), 1);
        }
        for (line, start, next_step) in [
            ("memory = 5", "line 1: memory = 5: ", "256MB"),
            ("memory = \"0MB\"", "line 1: memory = \"0MB\": ", "256MB"),
            ("metrics = \"0.0.0.0:9477\"", "line 1: metrics = ", "127.0.0.1:PORT"),
            ("metrics = \"localhost\"", "line 1: metrics = \"localhost\": ", "127.0.0.1:PORT"),
            ("dry_run = \"yes\"", "line 1: dry_run = \"yes\": ", "true or false"),
            ("[[rule]]", "line 1: the rule has no goal; ", "less-than-best-effort"),
            ("[[rule]]\ngoal = 7", "line 2: goal = 7: ", "less-than-best-effort"),
            ("[[rule]]\ngoal = \"speed\"", "line 2: goal = \"speed\": ", "throughput"),
        ] {
            let said = complaint(&format!("{line}\n{rule}"));
            assert!(said.starts_with(start) && said.contains(next_step), "{said}");
        }
        let said = complaint("[[rule]]\ngoal = \"leave\"\ncongestion = \"bbr\"");
        assert!(
            said.starts_with("line 3: congestion = \"bbr\": ") && said.contains("goal"),
            "{said}"
        );
        let said = complaint("[rule]\ngoal = \"throughput\"");
        assert!(said.contains("[[rule]]"), "{said}");
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in ".{0,200}") {
            let _ = parse(&text);
        }
    }
}
