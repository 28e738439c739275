use serde::Serialize;
use sweetspot_units::{Bytes, Duration, Rate};

use crate::{Class, Limits, words};

/// What a verdict rests on, from whichever source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Evidence {
    /// Payload delivered per second.
    pub goodput: Rate,
    /// The payload that the path could deliver, where that was seen.
    pub capacity: Option<Rate>,
    /// The shortest round trip.
    pub rtt_min: Option<Duration>,
    /// The median round trip.
    pub rtt: Option<Duration>,
    /// The window that was found full.
    pub window: Option<Bytes>,
    /// Its scale, where known.
    pub scale: Option<u8>,
    /// What was under way where no window of the receiver bounded it.
    pub flight: Option<Bytes>,
    /// Payload of a full segment.
    pub mss: Bytes,
    /// Segments sent.
    pub segments: u64,
    /// How many of them more than once; the receiver's kernel does not know.
    pub resent: Option<u64>,
    /// Separate loss events.
    pub loss_events: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Times the receiver closed its window.
    pub zero_windows: u64,
    /// How long the flow was seen.
    pub lasted: Duration,
    /// Payload in all.
    pub bytes: Bytes,
    /// Why nothing can be told, where nothing can.
    pub unknown_because: Option<&'static str>,
}

/// What limits a flow, in words.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// The class with the largest share.
    pub class: Class,
    /// Its share of the time, 0 to 1.
    pub share_of_time: f64,
    /// What limits, by how much, and why.
    pub words: String,
    /// What more it would carry without this limit.
    #[serde(skip)]
    pub gain: Rate,
    /// What to do about it.
    #[serde(skip)]
    pub fix: String,
}

impl Verdict {
    /// The verdict on a flow whose time went where `limits` says.
    pub fn new(limits: &Limits, evidence: &Evidence) -> Verdict {
        let class = limits.dominant();
        let share = limits.share(class);
        let gain = words::gain(class, evidence);
        Verdict {
            class,
            share_of_time: (share * 1e4).round() / 1e4,
            words: words::verdict(class, share, evidence, gain),
            gain,
            fix: words::fix(class, evidence),
        }
    }
}
