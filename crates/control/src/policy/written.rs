//! Reads a policy from TOML. Every error names the line, the key and the values allowed.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;

use serde::Deserialize;
use sweetspot_units::Bytes;
use toml::{Spanned, Value};

use super::{PROGRAM_NAME_BYTES, Policy, PolicyError, PolicyRule, ValueError};
use crate::CongestionName;
use crate::goal::Goal;

/// The smallest memory budget: the largest window without window scaling (RFC 9293).
pub(super) const MIN_MEMORY: Bytes = Bytes::new(65_535);

/// The keys of a policy. Their values are checked below, so that errors can list the values allowed.
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

/// A value and its place in the text, if the key was given.
type SpannedValue = Option<Spanned<Value>>;

impl Policy {
    /// Reads a policy. `uid_of` looks up the ID of a user by name; `None`: no such user.
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
    let goal = one(text, "goal", written.goal, goal)?.ok_or(PolicyError::NoGoal { line })?;
    Ok(PolicyRule {
        line,
        users: list(text, "users", written.users, |value| user(value, uid_of))?,
        programs: list(text, "programs", written.programs, program)?,
        ports: list(text, "ports", written.ports, ports)?,
        peers: list(text, "peers", written.peers, |peers| {
            peers.as_str().and_then(|p| p.parse().ok()).ok_or(ValueError::Peers)
        })?,
        cgroups: list(text, "cgroups", written.cgroups, |cgroup| {
            cgroup.as_str().and_then(|c| c.parse().ok()).ok_or(ValueError::Cgroup)
        })?,
        congestion: one(text, "congestion", written.congestion, |value| {
            congestion(value, goal.is_none())
        })?,
        goal,
    })
}

/// The value of `key`, parsed by `read`.
fn one<T>(
    text: &str,
    key: &'static str,
    written: SpannedValue,
    read: impl Fn(&Value) -> Result<T, ValueError>,
) -> Result<Option<T>, PolicyError> {
    let Some(written) = written else { return Ok(None) };
    let value = written.get_ref();
    read(value).map(Some).map_err(|reason| invalid(text, key, &written, value, reason))
}

/// The values of the list `key`, each parsed by `read`; empty without the key.
fn list<T>(
    text: &str,
    key: &'static str,
    written: SpannedValue,
    read: impl Fn(&Value) -> Result<T, ValueError>,
) -> Result<Vec<T>, PolicyError> {
    let Some(written) = written else { return Ok(Vec::new()) };
    let invalid = |value: &Value, reason| invalid(text, key, &written, value, reason);
    let Some(values) = written.get_ref().as_array() else {
        return Err(invalid(written.get_ref(), ValueError::List));
    };
    values.iter().map(|value| read(value).map_err(|reason| invalid(value, reason))).collect()
}

/// The error about `value`, which is the value `written` for `key` or an element of it.
fn invalid(
    text: &str,
    key: &'static str,
    written: &Spanned<Value>,
    value: &Value,
    reason: ValueError,
) -> PolicyError {
    let line = line(text, written.span().start);
    PolicyError::Value { line, key, given: value.to_string().replace('\n', " "), reason }
}

/// The TOML parser's message as one line.
fn in_words(message: &str) -> String {
    // Only tables have fixed types here; a key accepts any value.
    if message.starts_with("invalid type: ") {
        return "write rules as tables named [[rule]]".to_owned();
    }
    if let Some(rest) = message.strip_prefix("unknown field ") {
        let (key, known) = rest.split_once(", expected ").unwrap_or((rest, ""));
        let known = known.trim_start_matches("one of ");
        return format!("unknown key {key}; the keys are {known}");
    }
    message.replace('\n', " ")
}

/// The number of the line that contains byte `at`.
fn line(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

fn memory(value: &Value) -> Result<Bytes, ValueError> {
    let text = value.as_str().ok_or(ValueError::UnquotedSize)?;
    let memory: Bytes = text.parse().map_err(|error| ValueError::Size(Box::new(error)))?;
    if memory < MIN_MEMORY {
        return Err(ValueError::TooLittleMemory);
    }
    Ok(memory)
}

fn flag(value: &Value) -> Result<bool, ValueError> {
    value.as_bool().ok_or(ValueError::Flag)
}

fn metrics(value: &Value) -> Result<SocketAddr, ValueError> {
    loopback(value.as_str().unwrap_or_default())
}

/// Parses a metrics address, which must be a loopback address. The error gives an example.
pub fn loopback(given: &str) -> Result<SocketAddr, ValueError> {
    let address: Option<SocketAddr> = given.parse().ok();
    match address {
        Some(address) if address.ip().is_loopback() => Ok(address),
        Some(_) => Err(ValueError::NotLoopback),
        None => Err(ValueError::Address),
    }
}

/// Whether a request's field `Host` names this host, by a loopback address or as `localhost`, with or without a port. A web
/// page with a name that resolves to a loopback address (DNS rebinding) sends that name.
pub fn is_loopback_host(host: &str) -> bool {
    // The port follows the last colon, unless the colon belongs to an IPv6 address: [::1].
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

/// A goal; `None` leaves the connections alone.
fn goal(value: &Value) -> Result<Option<Goal>, ValueError> {
    match value.as_str() {
        Some("leave") => Ok(None),
        other => other.and_then(|text| text.parse().ok()).map(Some).ok_or(ValueError::Goal),
    }
}

/// The name of a congestion control. Connections that are `left_alone` cannot have one chosen.
fn congestion(value: &Value, left_alone: bool) -> Result<CongestionName, ValueError> {
    if left_alone {
        return Err(ValueError::CongestionLeftAlone);
    }
    Ok(value.as_str().unwrap_or_default().parse()?)
}

/// A program's name, truncated to the length that the kernel keeps.
fn program(value: &Value) -> Result<String, ValueError> {
    let name = value.as_str().filter(|name| !name.is_empty() && !name.contains('/'));
    let bytes = name.ok_or(ValueError::Program)?.as_bytes();
    Ok(String::from_utf8_lossy(&bytes[..bytes.len().min(PROGRAM_NAME_BYTES)]).into_owned())
}

/// A user by number or by name.
fn user(value: &Value, uid_of: &dyn Fn(&str) -> Option<u32>) -> Result<u32, ValueError> {
    let name = match value {
        Value::Integer(uid) => return u32::try_from(*uid).map_err(|_| ValueError::User),
        Value::String(name) => name,
        _ => return Err(ValueError::User),
    };
    uid_of(name).ok_or(ValueError::NoSuchUser)
}

/// A port such as 443, or a range such as "8000-8999".
fn ports(value: &Value) -> Result<RangeInclusive<u16>, ValueError> {
    let text = match value {
        Value::Integer(port) => port.to_string(),
        Value::String(text) => text.clone(),
        _ => String::new(),
    };
    let (first, last) = text.split_once('-').unwrap_or((&text, &text));
    let number = |n: &str| n.trim().parse::<u16>().ok();
    match number(first).zip(number(last)) {
        Some((first, last)) if first <= last => Ok(first..=last),
        _ => Err(ValueError::Ports),
    }
}
