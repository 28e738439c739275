use std::fmt;

use serde::{Deserialize, Serialize};

/// The limit of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Class {
    /// Slow start: the transfer has too little data to leave it, or has not left it yet.
    Opportunity,
    /// The congestion window after losses.
    Congestion,
    /// The congestion window, which grows slowly although nothing is lost.
    Transport,
    /// The window that the receiver advertises.
    ReceiverWindow,
    /// The receiving application, which leaves data unread (T-RAT counts it as receiver window).
    ReceiverApplication,
    /// The send buffer.
    SenderWindow,
    /// The path's capacity.
    Bandwidth,
    /// The sending application: it has nothing to send, although it is its turn.
    Application,
    /// A pacing rate that the sender set for itself.
    Pacing,
    /// Repeated retransmissions got no answer: the peer or the path is gone.
    Stalled,
    /// The sending application waits for the peer's request or answer. Belongs to the family of
    /// [`Class::Application`].
    WaitingForPeer,
    /// Neither side has anything to send, between transfers or after the last. Belongs to the
    /// family of [`Class::Application`].
    Idle,
    /// The connection was refused, reset or not answered before it was open.
    NeverEstablished,
    /// The limit is unknown.
    Unknown,
}

impl Class {
    /// All classes.
    pub const ALL: [Class; 14] = [
        Class::Opportunity,
        Class::Congestion,
        Class::Transport,
        Class::ReceiverWindow,
        Class::ReceiverApplication,
        Class::SenderWindow,
        Class::Bandwidth,
        Class::Application,
        Class::Pacing,
        Class::Stalled,
        Class::WaitingForPeer,
        Class::Idle,
        Class::NeverEstablished,
        Class::Unknown,
    ];

    /// The class under which this class is counted where only the kind of limit matters. Time
    /// without data to send counts as the application's, whatever the application waits for.
    pub fn family(self) -> Class {
        match self {
            Class::WaitingForPeer | Class::Idle => Class::Application,
            class => class,
        }
    }

    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Class::Opportunity => "opportunity",
            Class::Congestion => "congestion",
            Class::Transport => "transport",
            Class::ReceiverWindow => "receiver_window",
            Class::ReceiverApplication => "receiver_application",
            Class::SenderWindow => "sender_window",
            Class::Bandwidth => "bandwidth",
            Class::Application => "application",
            Class::Pacing => "pacing",
            Class::Stalled => "stalled",
            Class::WaitingForPeer => "waiting_for_peer",
            Class::Idle => "idle",
            Class::NeverEstablished => "never_established",
            Class::Unknown => "unknown",
        }
    }

    /// The class's entry in a table, after "limited by".
    pub fn words(self) -> &'static str {
        match self {
            Class::Opportunity => "slow start",
            Class::Congestion => "congestion window after loss",
            Class::Transport => "growing congestion window",
            Class::ReceiverWindow => "receiver's window",
            Class::ReceiverApplication => "receiver's application",
            Class::SenderWindow => "sender's buffer",
            Class::Bandwidth => "path at capacity",
            Class::Application => "application",
            Class::Pacing => "pacing",
            Class::Stalled => "stalled",
            Class::WaitingForPeer => "waiting for the peer",
            Class::Idle => "idle",
            Class::NeverEstablished => "never established",
            Class::Unknown => "unknown",
        }
    }

    /// A name of at most 14 characters, which fits behind "100 % " in a table.
    pub fn brief(self) -> &'static str {
        match self {
            Class::Congestion => "losses",
            Class::Transport => "cwnd growing",
            Class::ReceiverWindow => "receiver's wnd",
            Class::ReceiverApplication => "receiving app",
            Class::SenderWindow => "send buffer",
            Class::Bandwidth => "at capacity",
            Class::WaitingForPeer => "waits for peer",
            Class::NeverEstablished => "never opened",
            other => other.words(),
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brief_class_names_fit_their_table_column() {
        for class in Class::ALL {
            assert!(class.brief().chars().count() <= 14, "{class}");
        }
    }
}
