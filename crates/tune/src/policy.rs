//! Whose connections a daemon tunes, and what for: a TOML file.

mod peers;

use std::fs;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::Deserialize;
use sweetspot_units::Bytes;
use thiserror::Error;

pub use peers::Peers;

use crate::goal::Goal;

/// What is wrong with a policy.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PolicyError {
    /// Not TOML, or not these keys.
    #[error("line {line}: {message}")]
    Syntax {
        /// Where.
        line: usize,
        /// What was expected.
        message: String,
    },
    /// A value that cannot be.
    #[error("{key} = \"{given}\": {reason}")]
    Value {
        /// The key.
        key: &'static str,
        /// What was written.
        given: String,
        /// Why not.
        reason: String,
    },
    /// Nothing to do.
    #[error("it has no [[rule]]; add one, such as [[rule]] with goal = \"throughput\"")]
    NoRule,
}

/// Whose connections are tuned, and what for.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// The most that all windows together may be.
    pub memory: Option<Bytes>,
    /// Decide and tell, but touch nothing.
    pub dry_run: bool,
    /// Where metrics can be had.
    pub metrics: Option<SocketAddr>,
    rules: Vec<Rule>,
}

/// What is known of a connection when its rule is looked for.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The user of its process.
    pub uid: u32,
    /// What its process is called.
    pub program: &'a str,
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
}

#[derive(Debug, Clone, PartialEq)]
struct Rule {
    users: Vec<u32>,
    programs: Vec<String>,
    ports: Vec<RangeInclusive<u16>>,
    peers: Vec<Peers>,
    goal: Option<Goal>,
}

impl Rule {
    /// A list that is empty is no condition.
    fn covers(&self, subject: &Subject<'_>) -> bool {
        let port = |range: &RangeInclusive<u16>| {
            range.contains(&subject.remote.port()) || range.contains(&subject.local.port())
        };
        (self.users.is_empty() || self.users.contains(&subject.uid))
            && (self.programs.is_empty() || self.programs.iter().any(|p| p == subject.program))
            && (self.ports.is_empty() || self.ports.iter().any(port))
            && (self.peers.is_empty() || self.peers.iter().any(|p| p.contain(subject.remote.ip())))
    }
}

impl Policy {
    /// The goal of a connection by the first rule that covers it; `None`: it is left alone.
    pub fn goal(&self, subject: &Subject<'_>) -> Option<Goal> {
        self.rules.iter().find(|rule| rule.covers(subject))?.goal
    }
}

/// As it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    memory: Option<String>,
    #[serde(default)]
    dry_run: bool,
    metrics: Option<String>,
    #[serde(default)]
    rule: Vec<WrittenRule>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRule {
    #[serde(default)]
    users: Vec<NumberOrName>,
    #[serde(default)]
    programs: Vec<String>,
    #[serde(default)]
    ports: Vec<NumberOrName>,
    #[serde(default)]
    peers: Vec<String>,
    goal: String,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum NumberOrName {
    Number(u32),
    Name(String),
}

impl FromStr for Policy {
    type Err = PolicyError;
    fn from_str(text: &str) -> Result<Policy, PolicyError> {
        let written: Written = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start).min(text.len());
            let line = text.as_bytes()[..at].iter().filter(|b| **b == b'\n').count() + 1;
            PolicyError::Syntax { line, message: error.message().replace('\n', " ") }
        })?;
        if written.rule.is_empty() {
            return Err(PolicyError::NoRule);
        }
        Ok(Policy {
            memory: written.memory.map(|given| read("memory", &given)).transpose()?,
            dry_run: written.dry_run,
            metrics: written.metrics.as_deref().map(loopback).transpose()?,
            rules: written.rule.into_iter().map(rule).collect::<Result<_, _>>()?,
        })
    }
}

/// An address for metrics: strangers must not reach it.
pub fn loopback(given: &str) -> Result<SocketAddr, PolicyError> {
    let address: SocketAddr = read("metrics", given)?;
    if address.ip().is_loopback() {
        return Ok(address);
    }
    let reason = "metrics are for this host only; write it like 127.0.0.1:9477".to_owned();
    Err(PolicyError::Value { key: "metrics", given: given.to_owned(), reason })
}

fn read<T>(key: &'static str, given: &str) -> Result<T, PolicyError>
where
    T: FromStr,
    T::Err: std::fmt::Display,
{
    let complain =
        |e: T::Err| PolicyError::Value { key, given: given.to_owned(), reason: e.to_string() };
    given.parse().map_err(complain)
}

fn rule(written: WrittenRule) -> Result<Rule, PolicyError> {
    let goal = match written.goal.as_str() {
        "leave" => None,
        other => Some(read("goal", other)?),
    };
    Ok(Rule {
        users: written.users.into_iter().map(user).collect::<Result<_, _>>()?,
        programs: written.programs,
        ports: written.ports.into_iter().map(ports).collect::<Result<_, _>>()?,
        peers: written.peers.iter().map(|p| read("peers", p)).collect::<Result<_, _>>()?,
        goal,
    })
}

/// A user by number or by name.
fn user(written: NumberOrName) -> Result<u32, PolicyError> {
    let name = match written {
        NumberOrName::Number(uid) => return Ok(uid),
        NumberOrName::Name(name) => name,
    };
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    // name:password:uid:... (passwd(5)).
    let uid = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next()? == name).then(|| fields.nth(1)?.parse().ok())?
    });
    let reason = || "/etc/passwd has no such user; give the number that id -u prints".to_owned();
    uid.ok_or_else(|| PolicyError::Value { key: "users", given: name, reason: reason() })
}

/// 443 or "8000-8999".
fn ports(written: NumberOrName) -> Result<RangeInclusive<u16>, PolicyError> {
    let text = match written {
        NumberOrName::Number(port) => port.to_string(),
        NumberOrName::Name(text) => text,
    };
    let (first, last) = text.split_once('-').unwrap_or((&text, &text));
    let number = |n: &str| n.trim().parse::<u16>().ok();
    match number(first).zip(number(last)) {
        Some((first, last)) if first <= last => Ok(first..=last),
        _ => {
            let reason = "write a port like 443, or \"8000-8999\"".to_owned();
            Err(PolicyError::Value { key: "ports", given: text, reason })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn subject<'a>(program: &'a str, remote: &str) -> Subject<'a> {
        let local = "192.0.2.1:50000".parse().unwrap();
        Subject { uid: 1000, program, local, remote: remote.parse().unwrap() }
    }

    #[test]
    fn the_first_rule_that_covers_a_connection_decides() {
        let policy: Policy = r#"
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
        "#
        .parse()
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
    fn the_policy_to_begin_with_can_be_read() {
        let policy: Policy = include_str!("../../../packaging/policy.toml").parse().unwrap();
        let goal = |program| policy.goal(&subject(program, "192.0.2.7:443"));
        assert_eq!(goal("restic"), Some(Goal::LessThanBestEffort));
        assert_eq!(goal("curl"), Some(Goal::Throughput));
        assert_eq!(goal("sshd"), None);
    }

    #[test]
    fn what_is_wrong_is_named_in_one_line() {
        let complaint = |text: &str| text.parse::<Policy>().unwrap_err().to_string();
        assert!(complaint("").starts_with("it has no [[rule]]"));
        assert!(complaint("[[rule]]\ngaol = \"throughput\"").starts_with("line 2: unknown field"));
        let rule = |line: &str| format!("[[rule]]\ngoal = \"throughput\"\n{line}");
        for (line, start) in [
            ("ports = [\"9-1\"]", "ports = \"9-1\": write a port like"),
            ("ports = [70000]", "ports = \"70000\": write a port like"),
            ("users = [\"no-such-user\"]", "users = \"no-such-user\": /etc/passwd"),
            ("peers = [\"10.0.0.0/33\"]", "peers = \"10.0.0.0/33\": "),
        ] {
            let said = complaint(&rule(line));
            assert!(said.starts_with(start), "{said}");
            assert_eq!(said.lines().count(), 1);
        }
        assert!(complaint("[[rule]]\ngoal = \"speed\"").contains("throughput"));
        let open = "metrics = \"0.0.0.0:9477\"\n[[rule]]\ngoal = \"throughput\"";
        assert!(complaint(open).contains("127.0.0.1:9477"));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in ".{0,200}") {
            let _ = text.parse::<Policy>();
        }
    }
}
