//! Which settings of a host cap a flow, on which end, what changing them gains and costs, and the
//! mistakes that tuning guides leave behind.

mod caps;
mod check;
mod plan;
mod reference;
mod show;
mod snapshot;

pub use caps::{Cap, Side};
pub use plan::{Advice, Direction, Question, advise};
pub use reference::Reference;
pub use snapshot::{Device, Listener, Snapshot, Sysctls};

use sweetspot_units::{Bytes, Rate};

/// Which end of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The host that is asked about.
    Here,
    /// The other one.
    Peer,
}

impl End {
    /// As a person says it.
    pub fn name(self) -> &'static str {
        match self {
            End::Here => "this host",
            End::Peer => "the peer",
        }
    }
}

/// One thing to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What, e.g. `net.ipv4.tcp_rmem`.
    pub what: String,
    /// Where.
    pub end: End,
    /// Why it matters.
    pub why: String,
    /// Its value.
    pub now: String,
    /// The value to give it.
    pub wanted: String,
    /// How much faster a flow can be once nothing else limits it; `None` where that is not known.
    pub gain: Option<Rate>,
    /// How much more memory the connections may take.
    pub cost: Option<Bytes>,
    /// The line that changes it.
    pub command: String,
}

impl Finding {
    /// A finding about a sysctl, without gain or cost.
    pub(crate) fn sysctl(
        end: End,
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

    /// Whether the change is a sysctl, which a sysctl.d file can hold.
    pub fn is_sysctl(&self) -> bool {
        self.command.starts_with("sysctl ")
    }
}
