//! Uploads, steered by their pace (`SO_MAX_PACING_RATE`). The kernel paces TCP by itself (since
//! Linux 4.13, kernel commit 218af599fa63), without the fq qdisc.

mod buffer;

use sweetspot_sizing::{Driver, Effect, EventKind, KernelView, Means, Phase, Reason, SenderReport};
use sweetspot_units::{Bytes, Duration, Rate, Time};

pub use buffer::{BufferAdvice, buffer_for};

use crate::event::Kind;

/// A pace to be set, or lifted, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What happened; `None`: a change not worth telling, as of a trial and its end.
    pub kind: Option<Kind>,
    /// The pace that was in force.
    pub before: Option<Rate>,
    /// The most that it may send at; `None`: as it likes.
    pub pace: Option<Rate>,
    /// Why, in words.
    pub why: String,
}

/// Paces one connection by [`sweetspot_sizing::Upload`].
///
/// **Contract.** `now` never goes backwards. The next look is no later than at
/// [`Upload::poll_timeout`].
pub struct Upload {
    driver: Driver,
    delivered: Bytes,
    pace: Option<Rate>,
}

impl Default for Upload {
    fn default() -> Upload {
        let controller = Box::new(sweetspot_sizing::Upload::default());
        // Called at this connection's looks.
        let driver = Driver::new(controller, Time::ZERO, Means::Caller);
        Upload { driver, delivered: Bytes::ZERO, pace: None }
    }
}

impl Upload {
    /// A look at the connection: the payload that reached the peer since its beginning, the smoothed
    /// round trip (zero for none), and the sender's own view. What is to be done then.
    pub fn handle_sample(
        &mut self,
        now: Time,
        delivered: Bytes,
        rtt: Duration,
        report: &SenderReport,
    ) -> Option<Step> {
        let minimum_rtt = report.minimum_rtt;
        let kernel = KernelView { rtt, minimum_rtt, ..KernelView::default() };
        let before = std::mem::replace(&mut self.delivered, delivered);
        self.driver.handle_kernel(now, &kernel);
        self.driver.handle_sender(now, report);
        self.driver.handle_data(now, delivered.saturating_sub(before), Bytes::ZERO);
        self.driver.handle_timeout(now, &kernel);
        self.take_step(rtt.saturating_sub(minimum_rtt))
    }

    /// When it is to be looked at again, where that is soon; [`Time::MAX`]: it is not.
    pub fn poll_timeout(&self) -> Time {
        self.driver.poll_timeout()
    }

    /// The pace in force.
    pub fn pace(&self) -> Option<Rate> {
        self.pace
    }

    fn take_step(&mut self, queue: Duration) -> Option<Step> {
        let (before, mut told) = (self.pace, None);
        while let Some(effect) = self.driver.poll_effect() {
            match effect {
                Effect::Pacing(pace) => self.pace = pace,
                Effect::Event(event) => told = words(&event.kind, before, queue).or(told),
                // Nothing of the receiver's is asked for.
                Effect::Window(_)
                | Effect::Congestion(_)
                | Effect::Probe { .. }
                | Effect::Train { .. }
                | Effect::ProbesBlocked => {}
            }
        }
        let (kind, why) = told.unzip();
        let step = Step { kind, before, pace: self.pace, why: why.unwrap_or_default() };
        (step.kind.is_some() || step.pace != before).then_some(step)
    }
}

/// What the controller did to an upload of this pace and queue, in words.
fn words(kind: &EventKind, before: Option<Rate>, queue: Duration) -> Option<(Kind, String)> {
    let EventKind::Entered { phase, reason } = kind else { return None };
    let kind = match (phase, reason) {
        (Phase::Trying, _) if before.is_none() => Kind::Taken,
        (Phase::Trying, _) => Kind::Tightened,
        (Phase::Holding, Reason::PathFaster) => Kind::Reopened,
        (Phase::Holding, _) => Kind::Held,
        (Phase::Open, _) => Kind::LetGo,
        (Phase::HandsOff | Phase::Measuring | Phase::Ramping | Phase::Congested, _) => return None,
    };
    let why = match kind {
        Kind::Taken | Kind::Tightened => format!("{reason} (a queue of {queue})"),
        _ => reason.to_string(),
    };
    Some((kind, why))
}
