//! Reads a policy from TOML. Every error names the line, the key and the values allowed.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;

use serde::Deserialize;
use sweetspot_units::Bytes;
use toml::{Spanned, Value};

use super::{PROGRAM_NAME_BYTES, Policy, PolicyError, PolicyRule};
use crate::CongestionName;
use crate::goal::Goal;

/// The smallest memory budget: the largest window without window scaling (RFC 9293).
const MIN_MEMORY: Bytes = Bytes::new(65_535);

/// The keys of a policy. The readers below check the values, so that errors list the values allowed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyText {
    memory: SpannedValue,
    dry_run: SpannedValue,
    metrics: SpannedValue,
    #[serde(default)]
    rule: Vec<Spanned<RuleText>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleText {
    users: SpannedValue,
    programs: SpannedValue,
    ports: SpannedValue,
    peers: SpannedValue,
    cgroups: SpannedValue,
    goal: SpannedValue,
    congestion: SpannedValue,
}

/// A value and its place in the text, if it was given.
type SpannedValue = Option<Spanned<Value>>;

impl Policy {
    /// Reads a policy. `uid_of` looks up the number of a user by name; `None` means that there is no such user.
    pub fn parse(text: &str, uid_of: &dyn Fn(&str) -> Option<u32>) -> Result<Policy, PolicyError> {
        let written: PolicyText = toml::from_str(text).map_err(|error| PolicyError::Syntax {
            line: line(text, error.span().map_or(0, |span| span.start)),
            message: in_words(error.message()),
        })?;
        if written.rule.is_empty() {
            return Err(PolicyError::NoRule);
        }
        let rules = written.rule.into_iter().map(|r| rule(text, r, uid_of));
        Ok(Policy {
            memory: one(text, "memory", written.memory, memory)?,
            dry_run: one(text, "dry_run", written.dry_run, flag)?.unwrap_or(false),
            metrics: one(text, "metrics", written.metrics, metrics)?,
            rules: rules.collect::<Result<_, _>>()?,
        })
    }
}

fn rule(
    text: &str,
    written: Spanned<RuleText>,
    uid_of: &dyn Fn(&str) -> Option<u32>,
) -> Result<PolicyRule, PolicyError> {
    let line = line(text, written.span().start);
    let written = written.into_inner();
    let no_goal = || {
        let given = "nothing".to_owned();
        PolicyError::Value { line, key: "goal", given, reason: GOAL_USAGE.to_owned() }
    };
    let goal = one(text, "goal", written.goal, goal)?.ok_or_else(no_goal)?;
    Ok(PolicyRule {
        users: list(text, "users", written.users, |value| user(value, uid_of))?,
        programs: list(text, "programs", written.programs, program)?,
        ports: list(text, "ports", written.ports, ports)?,
        peers: list(text, "peers", written.peers, |peers| {
            const PEERS_USAGE: &str =
                "write it like \"10.0.0.0/8\", \"2001:db8::/32\" or \"192.0.2.7\"";
            peers.as_str().and_then(|p| p.parse().ok()).ok_or(PEERS_USAGE.to_owned())
        })?,
        cgroups: list(text, "cgroups", written.cgroups, |cgroup| {
            const CGROUPS_USAGE: &str = "write a path like \"system.slice/nginx.service\" or \"system.slice/docker-*.scope\"";
            cgroup.as_str().and_then(|c| c.parse().ok()).ok_or(CGROUPS_USAGE.to_owned())
        })?,
        congestion: one(text, "congestion", written.congestion, |value| {
            congestion(value, goal.is_none())
        })?,
        goal,
    })
}

/// The value of `key` as `read` reads it.
fn one<T>(
    text: &str,
    key: &'static str,
    written: SpannedValue,
    read: impl Fn(&Value) -> Result<T, String>,
) -> Result<Option<T>, PolicyError> {
    let Some(written) = written else { return Ok(None) };
    let value = written.get_ref();
    read(value).map(Some).map_err(|reason| wrong(text, key, &written, value, reason))
}

/// The values of the list `key`, each as `read` reads it; empty without the key.
fn list<T>(
    text: &str,
    key: &'static str,
    written: SpannedValue,
    read: impl Fn(&Value) -> Result<T, String>,
) -> Result<Vec<T>, PolicyError> {
    let Some(written) = written else { return Ok(Vec::new()) };
    let wrong = |value: &Value, reason| wrong(text, key, &written, value, reason);
    let Some(values) = written.get_ref().as_array() else {
        return Err(wrong(written.get_ref(), "write a list: [...]".to_owned()));
    };
    values.iter().map(|value| read(value).map_err(|reason| wrong(value, reason))).collect()
}

/// The error about `value`, which was `written` for `key` or an element of it.
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

/// The TOML parser's message in one line.
fn in_words(message: &str) -> String {
    // Only tables have a fixed type here; keys hold any value.
    if message.starts_with("invalid type: ") {
        return "write rules as tables named [[rule]]".to_owned();
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
    if memory < MIN_MEMORY {
        return Err(format!(
            "it is too small for a window; the minimum is {MIN_MEMORY}, \"256MB\" is typical, \
             and without the key there is no limit"
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

/// Reads an address for metrics, which must be a loopback one. The error gives an example.
pub fn loopback(given: &str) -> Result<SocketAddr, String> {
    let address: Option<SocketAddr> = given.parse().ok();
    match address {
        Some(address) if address.ip().is_loopback() => Ok(address),
        Some(_) => Err("metrics are for this host only; write it like 127.0.0.1:9477".to_owned()),
        None => Err("write a loopback address and a port, like 127.0.0.1:9477".to_owned()),
    }
}

/// Whether a request's field `Host` names this host by a loopback address or as `localhost`, with or without a port. A web page
/// with a name that resolves to such an address (DNS rebinding) sends its own name.
pub fn is_loopback_host(host: &str) -> bool {
    // The port follows the last colon, unless that belongs to an IPv6 address: [::1].
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let inner = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    match inner {
        Some(inner) => inner.parse::<Ipv6Addr>().is_ok_and(|address| address.is_loopback()),
        None => {
            name.eq_ignore_ascii_case("localhost")
                || name.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
        }
    }
}

const GOAL_USAGE: &str = "expected \"throughput\", \"less-than-best-effort\" or \"leave\"";

/// A goal; `None` leaves the connections alone.
fn goal(value: &Value) -> Result<Option<Goal>, String> {
    match value.as_str() {
        Some("leave") => Ok(None),
        other => other.and_then(|text| text.parse().ok()).map(Some).ok_or(GOAL_USAGE.to_owned()),
    }
}

/// The name of a congestion control. Connections that are `left_alone` keep theirs.
fn congestion(value: &Value, left_alone: bool) -> Result<CongestionName, String> {
    if left_alone {
        return Err(
            "goal = \"leave\" and congestion exclude each other; remove one of the two".to_owned()
        );
    }
    Ok(value.as_str().unwrap_or_default().parse()?)
}

/// A program's name, cut to the length that the kernel keeps.
fn program(value: &Value) -> Result<String, String> {
    const PROGRAM_USAGE: &str = "write a program's name without its path, such as \"curl\"";
    let name = value.as_str().filter(|name| !name.is_empty() && !name.contains('/'));
    let bytes = name.ok_or(PROGRAM_USAGE)?.as_bytes();
    Ok(String::from_utf8_lossy(&bytes[..bytes.len().min(PROGRAM_NAME_BYTES)]).into_owned())
}

/// A user by number or by name.
fn user(value: &Value, uid_of: &dyn Fn(&str) -> Option<u32>) -> Result<u32, String> {
    const USER_USAGE: &str = "write a user's name, or the number that id -u prints";
    let name = match value {
        Value::Integer(uid) => return u32::try_from(*uid).map_err(|_| USER_USAGE.to_owned()),
        Value::String(name) => name,
        _ => return Err(USER_USAGE.to_owned()),
    };
    uid_of(name).ok_or("there is no such user; give the number that id -u prints".to_owned())
}

/// A port such as 443, or a range such as "8000-8999".
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
