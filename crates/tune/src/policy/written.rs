//! A policy as it is written: TOML, whose every error names line, key and what can be written.

use std::fs;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::Deserialize;
use sweetspot_linux::processes;
use sweetspot_units::Bytes;
use toml::{Spanned, Value};

use super::{Policy, PolicyError, Rule};
use crate::goal::Goal;

/// The window of a connection without window scaling (RFC 9293): less than one would be no budget.
const LEAST_MEMORY: Bytes = Bytes::new(65_535);

/// The keys. What their values must be is said by the readers below, in words.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    memory: Key,
    dry_run: Key,
    metrics: Key,
    #[serde(default)]
    rule: Vec<Spanned<WrittenRule>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRule {
    users: Key,
    programs: Key,
    ports: Key,
    peers: Key,
    goal: Key,
}

/// A value and where it stands, if it was written.
type Key = Option<Spanned<Value>>;

impl FromStr for Policy {
    type Err = PolicyError;
    fn from_str(text: &str) -> Result<Policy, PolicyError> {
        let written: Written = toml::from_str(text).map_err(|error| PolicyError::Syntax {
            line: line(text, error.span().map_or(0, |span| span.start)),
            message: in_words(error.message()),
        })?;
        if written.rule.is_empty() {
            return Err(PolicyError::NoRule);
        }
        Ok(Policy {
            memory: one(text, "memory", written.memory, memory)?,
            dry_run: one(text, "dry_run", written.dry_run, flag)?.unwrap_or(false),
            metrics: one(text, "metrics", written.metrics, metrics)?,
            rules: written.rule.into_iter().map(|r| rule(text, r)).collect::<Result<_, _>>()?,
        })
    }
}

fn rule(text: &str, written: Spanned<WrittenRule>) -> Result<Rule, PolicyError> {
    let line = line(text, written.span().start);
    let written = written.into_inner();
    let no_goal = || {
        let given = "nothing".to_owned();
        PolicyError::Value { line, key: "goal", given, reason: GOALS.to_owned() }
    };
    Ok(Rule {
        users: list(text, "users", written.users, user)?,
        programs: list(text, "programs", written.programs, program)?,
        ports: list(text, "ports", written.ports, ports)?,
        peers: list(text, "peers", written.peers, |peers| {
            const USAGE: &str = "write it like \"10.0.0.0/8\", \"2001:db8::/32\" or \"192.0.2.7\"";
            peers.as_str().and_then(|p| p.parse().ok()).ok_or(USAGE.to_owned())
        })?,
        goal: one(text, "goal", written.goal, goal)?.ok_or_else(no_goal)?,
    })
}

/// The value of `key` as `read` understands it, which otherwise says what can be written.
fn one<T>(
    text: &str,
    key: &'static str,
    written: Key,
    read: impl Fn(&Value) -> Result<T, String>,
) -> Result<Option<T>, PolicyError> {
    let Some(written) = written else { return Ok(None) };
    let value = written.get_ref();
    read(value).map(Some).map_err(|reason| wrong(text, key, &written, value, reason))
}

/// The values of `key`, each as `read` understands it; none where it is not written.
fn list<T>(
    text: &str,
    key: &'static str,
    written: Key,
    read: impl Fn(&Value) -> Result<T, String>,
) -> Result<Vec<T>, PolicyError> {
    let Some(written) = written else { return Ok(Vec::new()) };
    let wrong = |value: &Value, reason| wrong(text, key, &written, value, reason);
    let Some(values) = written.get_ref().as_array() else {
        return Err(wrong(written.get_ref(), "write a list: [...]".to_owned()));
    };
    values.iter().map(|value| read(value).map_err(|reason| wrong(value, reason))).collect()
}

/// The complaint about `value`, which is what was `written` for `key` or one of a list there.
fn wrong(
    text: &str,
    key: &'static str,
    written: &Spanned<Value>,
    value: &Value,
    reason: String,
) -> PolicyError {
    let line = line(text, written.span().start);
    PolicyError::Value { line, key, given: value.to_string().replace('\n', " "), reason }
}

/// What TOML's parser says, in one line.
fn in_words(message: &str) -> String {
    // All else is read as any value.
    if message.starts_with("invalid type: ") {
        return "rules are written as tables below [[rule]]".to_owned();
    }
    message.replace('\n', " ")
}

/// The number of the line that holds byte `at`.
fn line(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

fn memory(value: &Value) -> Result<Bytes, String> {
    let text = value.as_str().ok_or("write a size in quotes, such as \"256MB\"")?;
    let memory: Bytes = text.parse().map_err(|error| format!("{error}"))?;
    if memory < LEAST_MEMORY {
        return Err(format!(
            "no window fits in that; {LEAST_MEMORY} is the least, \"256MB\" is usual, and \
             without the key there is no limit"
        ));
    }
    Ok(memory)
}

fn flag(value: &Value) -> Result<bool, String> {
    value.as_bool().ok_or("write true or false".to_owned())
}

fn metrics(value: &Value) -> Result<SocketAddr, String> {
    loopback(value.as_str().unwrap_or_default())
}

/// An address for metrics: nobody outside may reach it. The error says what can be written.
pub fn loopback(given: &str) -> Result<SocketAddr, String> {
    let address: Option<SocketAddr> = given.parse().ok();
    match address {
        Some(address) if address.ip().is_loopback() => Ok(address),
        Some(_) => Err("metrics are for this host only; write it like 127.0.0.1:9477".to_owned()),
        None => Err("write a loopback address and a port, like 127.0.0.1:9477".to_owned()),
    }
}

const GOALS: &str = "goals are \"throughput\", \"less-than-best-effort\" and \"leave\"";

/// `None`: connections are left alone.
fn goal(value: &Value) -> Result<Option<Goal>, String> {
    match value.as_str() {
        Some("leave") => Ok(None),
        other => other.and_then(|text| text.parse().ok()).map(Some).ok_or(GOALS.to_owned()),
    }
}

/// As much of a program's name as the kernel keeps of it.
fn program(value: &Value) -> Result<String, String> {
    const USAGE: &str = "write a program's name without its path, such as \"curl\"";
    let name = value.as_str().filter(|name| !name.is_empty() && !name.contains('/'));
    let bytes = name.ok_or(USAGE)?.as_bytes();
    Ok(String::from_utf8_lossy(&bytes[..bytes.len().min(processes::NAME)]).into_owned())
}

/// A user by number or by name.
fn user(value: &Value) -> Result<u32, String> {
    const USAGE: &str = "write a user's name, or the number that id -u prints";
    let name = match value {
        Value::Integer(uid) => return u32::try_from(*uid).map_err(|_| USAGE.to_owned()),
        Value::String(name) => name,
        _ => return Err(USAGE.to_owned()),
    };
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    // name:password:uid:... (passwd(5)).
    let uid = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next()? == name).then(|| fields.nth(1)?.parse().ok())?
    });
    uid.ok_or("/etc/passwd has no such user; give the number that id -u prints".to_owned())
}

/// 443 or "8000-8999".
fn ports(value: &Value) -> Result<RangeInclusive<u16>, String> {
    let text = match value {
        Value::Integer(port) => port.to_string(),
        Value::String(text) => text.clone(),
        _ => String::new(),
    };
    let (first, last) = text.split_once('-').unwrap_or((&text, &text));
    let number = |n: &str| n.trim().parse::<u16>().ok();
    match number(first).zip(number(last)) {
        Some((first, last)) if first <= last => Ok(first..=last),
        _ => Err("write a port like 443, or \"8000-8999\"".to_owned()),
    }
}
