use sweetspot_linux::tcp::Info;
use sweetspot_units::{Bytes, Duration, Rate, Time};

/// How long an upload is watched before anything is said of it.
const WATCHED: Duration = Duration::from_secs(3);

/// What must have been sent in that time for it to be an upload.
const BULK: Bytes = Bytes::new(1_000_000);

/// Share of the least round trip beyond which a queue stands.
const QUEUE: f64 = 0.25;

/// The pace advised, as a share of what was delivered: just below it the queue drains.
const PACE: f64 = 0.98;

/// Send buffer per byte of window: the kernel counts its bookkeeping too.
const BOOKKEEPING: u64 = 2;

/// Watches what a connection sends, and says once what its program would gain by.
///
/// It is advice, not action: SO_SNDBUF turns the kernel's autotuning off for good, and a pace
/// stays behind when the path gets faster; neither can be undone from outside.
#[derive(Debug, Default)]
pub struct Upload {
    first: Option<(Time, Bytes)>,
    lowest_rtt: Option<Duration>,
    fastest: Rate,
    said: bool,
}

impl Upload {
    /// A look at the connection; the advice, once.
    pub fn handle_look(&mut self, now: Time, info: &Info) -> Option<String> {
        let (since, before) = *self.first.get_or_insert((now, info.bytes_acked));
        if info.rtt > Duration::ZERO {
            self.lowest_rtt = Some(self.lowest_rtt.map_or(info.rtt, |low| low.min(info.rtt)));
        }
        if !info.delivery_rate_app_limited {
            self.fastest = self.fastest.max(info.delivery_rate);
        }
        let sent = info.bytes_acked.saturating_sub(before);
        if self.said || now.since(since) < WATCHED || sent < BULK {
            return None;
        }
        self.said = true;
        let (standing, least) = (info.rtt, info.min_rtt.min(self.lowest_rtt?));
        let rate = sent / now.since(since);
        let queue = standing.saturating_sub(least);
        if queue > least.scaled(QUEUE) {
            let pace = rate.scaled(PACE);
            let buffer = pace * least * BOOKKEEPING;
            return Some(format!(
                "a queue of {queue} stands at {rate}; SO_MAX_PACING_RATE of {pace} would empty it, \
                 and SO_SNDBUF of {buffer} hold what is then in flight"
            ));
        }
        let limited = info.sndbuf_limited.scaled(2.0) > info.busy_time;
        limited.then(|| {
            let buffer = self.fastest * least * BOOKKEEPING;
            format!(
                "the send buffer holds it back at {rate}; SO_SNDBUF of {buffer} lets {} through",
                self.fastest
            )
        })
    }
}
