use std::collections::VecDeque;

use sweetspot_units::{Bytes, Duration, Time};

use crate::advertised::Advertised;
use crate::reception::{Reception, Round};
use crate::{Controller, Input, Needs, Output, Phase, Setting};

/// Dynamic Right-Sizing (Gardner, Feng, Fisk: section II of the DRS paper): the receiver infers
/// the sender's congestion window from what arrives per round trip and advertises twice that
/// while the sender is in slow start, one segment more than that afterwards.
#[derive(Debug)]
pub struct RightSizing {
    mss: Bytes,
    rtt: Option<Duration>,
    taken: Bytes,
    reception: Reception,
    /// The windows that the last round trips asked for, the newest last.
    wanted: VecDeque<Bytes>,
    last_cwnd: Option<Bytes>,
    slow_start: bool,
    advertised: Advertised,
}

/// Before anything is known: the usual static window of the time (section III).
const INITIAL: Bytes = Bytes::new(65_535);

/// A sender whose window grows by more than this per round trip is in slow start: there it
/// grows by half or doubles (with and without delayed ACKs), elsewhere by a segment.
const SLOW_START_GROWTH: f64 = 1.25;

/// "awnd can be reduced a few RTTs after a multiplicative decrease is detected (enough time for
/// packets buffered in the network to reach the receiver)."
const REMEMBERED: usize = 4;

impl RightSizing {
    /// A controller before the first byte.
    pub fn new(setting: &Setting) -> RightSizing {
        RightSizing {
            mss: setting.mss,
            rtt: None,
            taken: Bytes::ZERO,
            reception: Reception::default(),
            wanted: VecDeque::with_capacity(REMEMBERED),
            last_cwnd: None,
            slow_start: true,
            advertised: Advertised::new(setting),
        }
    }

    /// The sender's window, from the mean rate over the round and the round-trip time.
    fn judge(&mut self, now: Time, round: Round, rtt: Duration) {
        let cwnd = (round.bytes / round.lasted) * rtt;
        if let Some(last) = self.last_cwnd {
            self.slow_start = cwnd.as_f64() >= last.as_f64() * SLOW_START_GROWTH;
        }
        self.last_cwnd = Some(cwnd);
        // awnd >= 2 cwnd in slow start, awnd >= cwnd + 1 in additive increase.
        let wanted = if self.slow_start { cwnd * 2 } else { cwnd + self.mss };
        if self.wanted.len() == REMEMBERED {
            self.wanted.pop_front();
        }
        self.wanted.push_back(wanted);
        if let Some(most) = self.wanted.iter().max() {
            self.advertised.set(now, *most);
        }
    }
}

impl Controller for RightSizing {
    fn handle(&mut self, now: Time, input: &Input) {
        if !self.advertised.is_set() {
            self.advertised.set(now, INITIAL);
        }
        match *input {
            Input::Data { bytes, unread } => {
                self.taken += bytes;
                self.reception.handle_total(self.taken + unread);
                let Some(rtt) = self.rtt else { return };
                if let Some(round) = self.reception.poll_round(now, rtt) {
                    self.judge(now, round, rtt);
                }
            }
            Input::KernelRtt(rtt) => {
                self.rtt = Some(rtt);
                self.reception.begin(now);
            }
            Input::Timeout => {}
            Input::Probe(_)
            | Input::Sender(_)
            | Input::MinimumRtt(_)
            | Input::OutOfOrder { .. }
            | Input::Train(_)
            | Input::Window { .. } => {}
            Input::End => self.advertised.lift(),
        }
    }
    fn poll_timeout(&self) -> Option<Time> {
        (!self.advertised.is_set()).then_some(Time::ZERO)
    }
    fn poll_output(&mut self) -> Option<Output> {
        self.advertised.poll_output()
    }
    fn needs(&self) -> Needs {
        Needs::KERNEL
    }
    fn phase(&self) -> Phase {
        if self.slow_start { Phase::Ramping } else { Phase::Holding }
    }
}
