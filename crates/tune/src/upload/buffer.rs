use sweetspot_linux::tcp::Info;
use sweetspot_units::{Bytes, Duration, Rate, Time};

/// How long an upload is watched before anything is said of its buffer.
const WATCHED: Duration = Duration::from_secs(3);

/// What must have been sent in that time for it to be an upload.
const BULK: Bytes = Bytes::new(1_000_000);

/// Send buffer per byte of window: the kernel counts its bookkeeping too.
const BOOKKEEPING: u64 = 2;

/// Says once, of a connection whose send buffer is too small, which one would do.
///
/// It is advice and not action: SO_SNDBUF turns the kernel's autotuning off, and nothing turns it on
/// again.
#[derive(Debug, Default)]
pub struct BufferAdvice {
    first: Option<(Time, Bytes)>,
    fastest: Rate,
    said: bool,
}

impl BufferAdvice {
    /// A look at the connection; the advice, once.
    pub fn handle_sample(&mut self, now: Time, info: &Info) -> Option<String> {
        let (since, before) = *self.first.get_or_insert((now, info.bytes_acked));
        if !info.delivery_rate_app_limited {
            self.fastest = self.fastest.max(info.delivery_rate);
        }
        let sent = info.bytes_acked.saturating_sub(before);
        if self.said || now.since(since) < WATCHED || sent < BULK {
            return None;
        }
        self.said = true;
        let rate = sent / now.since(since);
        let limited = info.sndbuf_limited.scaled(2.0) > info.busy_time;
        limited.then(|| {
            let buffer = buffer_for(self.fastest, info.min_rtt);
            format!(
                "the send buffer holds it back at {rate}; SO_SNDBUF of {buffer} lets {} through",
                self.fastest
            )
        })
    }
}

/// The send buffer that lets `rate` through in round trips of `rtt`, as SO_SNDBUF counts.
pub fn buffer_for(rate: Rate, rtt: Duration) -> Bytes {
    rate * rtt * BOOKKEEPING
}
