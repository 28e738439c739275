//! Accounts that a kernel gave of a connection earlier, as files keep them: the measurements of
//! M-Lab's NDT7, recordings of `top`, which are of the same form, and logs of `ss -ti`, through the
//! rules for live connections.

mod ndt7;
mod ss;

use std::collections::HashSet;
use std::net::SocketAddr;

pub use self::ndt7::written;

use sweetspot_units::Time;

use crate::live::{Live, Sample, Side};
use crate::{Evidence, Flow};

/// A connection whose kernel was asked again and again.
#[derive(Debug, Clone)]
pub struct Recording {
    /// The end that was asked, and the other.
    pub ends: [SocketAddr; 2],
    /// What it answered, in the order of time.
    pub samples: Vec<Sample>,
}

impl Recording {
    /// What is said of it.
    pub fn flow(&self) -> Flow {
        self.told().0
    }

    /// What is said of it, and whether the end that was asked sends or receives.
    fn told(&self) -> (Flow, Side) {
        let [local, remote] = self.ends;
        let mut live = Live::between(local.ip(), remote.ip());
        let mut last = Time::ZERO;
        for sample in &self.samples {
            last = last.max(sample.at);
            live.handle(Sample { at: last, ..*sample });
        }
        let evidence: Evidence = live.evidence();
        let (source, destination) = match live.side() {
            Side::Sender => (local, remote),
            Side::Receiver => (remote, local),
        };
        (Flow::new(source, destination, *live.limits(), &evidence), live.side())
    }
}

/// What is said of all `recordings`; where both ends of a connection were asked, by its sender, who
/// knows more.
pub fn flows(recordings: &[Recording]) -> Vec<Flow> {
    let told: Vec<(Flow, Side)> = recordings.iter().map(Recording::told).collect();
    let sent: HashSet<[SocketAddr; 2]> = told
        .iter()
        .filter(|(_, side)| *side == Side::Sender)
        .map(|(flow, _)| [flow.source, flow.destination])
        .collect();
    told.into_iter()
        .filter(|(flow, side)| {
            *side == Side::Sender || !sent.contains(&[flow.source, flow.destination])
        })
        .map(|(flow, _)| flow)
        .collect()
}

/// Reads the recordings in `text`; the error says what it is not.
///
/// ```
/// let log = "1700000000.0\n\
///     ESTAB 0 0 192.0.2.1:443 192.0.2.2:5000\n\
///     \t cubic wscale:7,7 rtt:40/2 mss:1448 cwnd:10 bytes_acked:1 minrtt:40\n\
///     1700000001.0\n\
///     ESTAB 0 0 192.0.2.1:443 192.0.2.2:5000\n\
///     \t cubic wscale:7,7 rtt:40/2 mss:1448 cwnd:10 bytes_acked:100001 busy:100ms minrtt:40\n";
/// let recordings = sweetspot_diagnose::recorded::read(log).unwrap();
/// assert_eq!(recordings[0].samples.len(), 2);
/// // It had nothing under way for nine tenths of the second.
/// assert_eq!(recordings[0].flow().verdict.class.name(), "application");
/// ```
pub fn read(text: &str) -> Result<Vec<Recording>, String> {
    let recordings = match text.trim_start().chars().next() {
        None => return Err("it is empty".to_owned()),
        Some('{' | '[') => ndt7::read(text)?,
        Some(_) => ss::read(text)?,
    };
    if recordings.iter().all(|recording| recording.samples.len() < 2) {
        return Err(
            "no connection in it was asked twice, so that nothing can be told of the time \
                    between"
                .to_owned(),
        );
    }
    Ok(recordings)
}
