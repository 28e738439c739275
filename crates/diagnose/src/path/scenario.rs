//! The path as a scenario.

use std::fmt::Write;

use sweetspot_measure::Finding;
use sweetspot_units::{Bytes, Duration, Rate};

use super::{PathEstimate, UnknownPath};
use crate::quantities::in_rate;

/// Minimum rate of the links between hosts and routers.
const MIN_ACCESS: Rate = Rate::from_mbit_per_second(1000);
/// Packet sizes that scenarios and the emulator accept, in bytes.
const PACKETS: std::ops::RangeInclusive<u64> = 576..=9000;

impl PathEstimate {
    /// The path as a scenario called `title`, with a comment on each value; the error names the missing values.
    pub fn scenario(&self, title: &str) -> Result<String, UnknownPath> {
        let (rate, rtt) = self.known()?;
        Ok(self.written(title, rate, rtt))
    }

    /// The capacity and the RTT; the error names the missing one and the reason.
    pub(super) fn known(&self) -> Result<(Rate, Duration), UnknownPath> {
        match (self.capacity_bps.result(), self.rtt_s.result()) {
            (Ok(rate), Ok(rtt)) => Ok((rate, rtt)),
            (Err(why), Ok(_)) => Err(UnknownPath::Capacity(why.clone())),
            (Ok(_), Err(why)) => Err(UnknownPath::RoundTrip(why.clone())),
            (Err(capacity), Err(rtt)) => {
                Err(UnknownPath::Both { capacity: capacity.clone(), rtt: rtt.clone() })
            }
        }
    }

    /// The depth of the bottleneck's buffer: the estimate, if known; otherwise the longest queue or a bandwidth-delay
    /// product, whichever is larger.
    pub(super) fn depth(&self, rate: Rate, rtt: Duration) -> (Bytes, String) {
        match self.buffer_bytes.value() {
            Some(bytes) => (bytes, how(&self.buffer_bytes)),
            None => {
                let (words, product) = (how(&self.buffer_bytes), rate * rtt);
                let assumed = if self.queued() > product {
                    "the longest queue"
                } else {
                    "a bandwidth-delay product"
                };
                (product.max(self.queued()), format!("assumed to be {assumed}; {words}"))
            }
        }
    }

    fn written(&self, title: &str, rate: Rate, rtt: Duration) -> String {
        let packet = self.packet_bytes().clamp(*PACKETS.start(), *PACKETS.end());
        let (buffer, buffer_how) = self.depth(rate, rtt);
        let loss = self.loss.value().map_or(0.0, |loss| loss.get());
        let access = rate.scaled(10.0).max(MIN_ACCESS);
        let mut text = String::new();
        // Writing to a String cannot fail.
        let mut line = |words: std::fmt::Arguments<'_>| {
            let _ = writeln!(text, "{words}");
        };
        line(format_args!("title = \"{title}\"\nwarmup = \"5s\"\nduration = \"20s\"\n\n[path]"));
        let payload = in_rate(rate.scaled(self.payload_share()));
        line(format_args!("# {} ({payload} without them)", how(&self.capacity_bps)));
        line(format_args!("rate = \"{}bit/s\"", rate.bits_per_second()));
        line(format_args!("# {}", how(&self.rtt_s)));
        line(format_args!("rtt = \"{}us\"", rtt.as_micros()));
        line(format_args!("# {buffer_how}\nbuffer = \"{}B\"", buffer.get().max(packet)));
        line(format_args!("# assumed: a capture does not show it\nqueue = \"drop-tail\""));
        line(format_args!("# {}\nloss = \"{}%\"", how(&self.loss), loss * 100.0));
        line(format_args!("packet = \"{packet}B\""));
        line(format_args!("access_rate = \"{}bit/s\"", access.bits_per_second()));
        line(format_args!("reverse = \"clean\"\n\n[tcp]\nflavour = \"linux\""));
        line(format_args!("header = \"{}B\"", self.header_bytes));
        line(format_args!("\n[[transfer]]\n# assumed: a capture does not name it"));
        line(format_args!("congestion = \"cubic\"\nsizing = \"kernel\""));
        text
    }
}

/// The method behind a value, or the reason why it is unknown.
fn how<T: Copy>(finding: &Finding<T>) -> String {
    let known = finding.result().is_ok();
    let source = if known { "from the capture" } else { "the capture does not tell" };
    format!("{source}: {}", finding.how())
}
