//! Host advice: the settings that limit a flow on each host, the gain and cost of changing them, and common mistakes of tuning
//! guides.

mod caps;
mod check;
mod lines;
mod plan;
mod reference;
mod show;
mod snapshot;
mod target;

pub use caps::{Cap, FlowRole};
pub use plan::{HostAdvice, HostDirection, HostQuestion, advise};
pub use reference::PublishedSettings;
pub use snapshot::{Device, Listener, Snapshot, Sysctls};

use sweetspot_units::{Bytes, Rate};

/// In place of a command, where only fewer connections or more memory help.
const NO_SETTING: &str = "# no setting adds memory: the windows together exceed half of the host's";

/// An end of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathEnd {
    /// This host.
    Here,
    /// The other host.
    Peer,
}

impl PathEnd {
    /// The name of this end in texts.
    pub fn name(self) -> &'static str {
        match self {
            PathEnd::Here => "this host",
            PathEnd::Peer => "the peer",
        }
    }
}

/// A recommended change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The setting, e.g. `net.ipv4.tcp_rmem`.
    pub what: String,
    /// The host to change.
    pub end: PathEnd,
    /// The reason why the setting matters.
    pub why: String,
    /// The present value.
    pub now: String,
    /// The recommended value.
    pub wanted: String,
    /// The rate that a flow can gain if nothing else limits it; `None` if unknown.
    pub gain: Option<Rate>,
    /// The additional memory that connections may use.
    pub cost: Option<Bytes>,
    /// The command that makes the change.
    pub command: String,
}

impl Finding {
    /// A finding about a sysctl, without gain or cost.
    pub(crate) fn sysctl(
        end: PathEnd,
        name: &str,
        now: impl core::fmt::Display,
        wanted: impl core::fmt::Display,
        why: impl Into<String>,
    ) -> Finding {
        let wanted = wanted.to_string();
        Finding {
            what: name.to_owned(),
            end,
            why: why.into(),
            now: now.to_string(),
            command: format!("sysctl -w {name}=\"{wanted}\""),
            wanted,
            gain: None,
            cost: None,
        }
    }

    pub(crate) fn gains(self, gain: Option<Rate>) -> Finding {
        Finding { gain, ..self }
    }

    pub(crate) fn costs(self, cost: Option<Bytes>) -> Finding {
        Finding { cost, ..self }
    }

    /// The command that undoes the change; `None` if the change is not a value set by a command.
    pub fn undo(&self) -> Option<String> {
        if self.is_sysctl() {
            return Some(format!("sysctl -w {}=\"{}\"", self.what, self.now));
        }
        let command = self.command.split('#').next().unwrap_or_default().trim_end();
        let before = command.strip_suffix(self.wanted.as_str()).filter(|b| b.ends_with(' '))?;
        Some(format!("{before}{}", self.now))
    }

    /// Whether the command makes the change as is. Otherwise it is a comment: a condition, or a change to a program.
    pub fn is_in_set(&self) -> bool {
        !self.command.contains('#')
    }

    /// Whether a change helps. Otherwise it is a warning.
    pub(crate) fn is_change(&self) -> bool {
        self.command != NO_SETTING
    }

    /// Whether only programs that set their own buffer gain from the change.
    pub(crate) fn is_for_explicit_buffers(&self) -> bool {
        ["net.core.rmem_max", "net.core.wmem_max"].contains(&self.what.as_str())
    }

    /// Whether the change is a sysctl, which a sysctl.d file can hold.
    pub fn is_sysctl(&self) -> bool {
        self.command.starts_with("sysctl ")
    }
}
