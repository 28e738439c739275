//! The applications of a measured transfer, if they are slower than TCP.

use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use sweetspot_path::Random;
use sweetspot_scenario::{Application, Schedule};
use sweetspot_transfer::{Allowance, ApplicationPace};
use sweetspot_units::{Bytes, Time};

/// The allowance per read or write of an application without a rate.
const EVERYTHING: Bytes = Bytes::new(64 << 10);

/// A scheduled application, with `now` as an argument; its methods match [`ApplicationPace`]'s.
pub(super) trait Scheduled: Send {
    /// An application that moves `portion` bytes at a time, with random gaps drawn from `seed`.
    fn new(schedule: Schedule, portion: Bytes, seed: u64) -> Self;
    fn poll_allowance(&mut self, now: Time, idle: bool) -> Allowance;
    fn handle_moved(&mut self, bytes: Bytes);
}

/// Reads portion by portion. Like the simulator's, it does not catch up on portions that had not arrived in time.
pub(super) struct Reader {
    schedule: Schedule,
    portion: Bytes,
    /// Time of the next read.
    due: Time,
    /// The bytes that it may read now.
    allowed: Bytes,
}

/// Produces portion by portion, whether or not TCP accepts its data.
pub(super) struct Writer {
    schedule: Schedule,
    portion: Bytes,
    random: Random,
    /// Time of the next portion.
    due: Time,
    /// Bytes produced but not yet written.
    ready: Bytes,
}

impl Scheduled for Reader {
    fn new(schedule: Schedule, portion: Bytes, _seed: u64) -> Reader {
        let due = schedule.start();
        Reader { schedule, portion, due, allowed: Bytes::ZERO }
    }

    fn poll_allowance(&mut self, now: Time, idle: bool) -> Allowance {
        if !self.schedule.is_paced() {
            return outside_pauses(&self.schedule, now);
        }
        if idle {
            (self.due, self.allowed) = (self.schedule.next_turn(now, || 0.0), Bytes::ZERO);
        }
        while self.due <= now {
            self.allowed += self.portion;
            self.due = self.schedule.next_turn(self.due, || 0.0);
        }
        allowance(self.allowed, self.due)
    }

    fn handle_moved(&mut self, bytes: Bytes) {
        self.allowed = self.allowed.saturating_sub(bytes);
    }
}

impl Scheduled for Writer {
    fn new(schedule: Schedule, portion: Bytes, seed: u64) -> Writer {
        let due = schedule.after_pause(schedule.start());
        Writer { schedule, portion, random: Random::new(seed), due, ready: Bytes::ZERO }
    }

    fn poll_allowance(&mut self, now: Time, _idle: bool) -> Allowance {
        if !self.schedule.is_paced() {
            return outside_pauses(&self.schedule, now);
        }
        while self.due <= now {
            self.ready += self.portion;
            self.due = self.schedule.next_turn(self.due, || self.random.unit());
        }
        allowance(self.ready, self.due)
    }

    fn handle_moved(&mut self, bytes: Bytes) {
        self.ready = self.ready.saturating_sub(bytes);
    }
}

fn allowance(bytes: Bytes, until: Time) -> Allowance {
    if bytes == Bytes::ZERO { Allowance::Nothing { until } } else { Allowance::Bytes(bytes) }
}

fn outside_pauses(schedule: &Schedule, now: Time) -> Allowance {
    let until = schedule.resumes(now);
    until.map_or(Allowance::Bytes(EVERYTHING), |until| Allowance::Nothing { until })
}

/// An application with a schedule that is known once the run begins. Before that, and after the end, it is as fast as its
/// connection, so it delays nothing.
pub(super) struct Paced<A> {
    application: Application,
    portion: Bytes,
    seed: u64,
    running: OnceLock<Running<A>>,
}

struct Running<A> {
    scheduled: Mutex<A>,
    end: Time,
}

impl<A: Scheduled> Paced<A> {
    /// An application that moves `portion` bytes at a time; `None` if TCP alone sets the pace.
    pub fn new(application: &Application, portion: Bytes, seed: u64) -> Option<Arc<Paced<A>>> {
        (!application.is_greedy()).then(|| {
            let (application, running) = (application.clone(), OnceLock::new());
            Arc::new(Paced { application, portion, seed, running })
        })
    }

    /// Sets the start of the transfer and the end of the run.
    pub fn begin(&self, start: Time, end: Time) {
        if let Some(schedule) = Schedule::new(&self.application, start, self.portion) {
            let scheduled = Mutex::new(A::new(schedule, self.portion, self.seed));
            let _ = self.running.set(Running { scheduled, end });
        }
    }
}

impl<A: Scheduled> ApplicationPace for Paced<A> {
    fn poll_allowance(&self, now: Time, idle: bool) -> Allowance {
        let Some(Running { scheduled, end }) = self.running.get().filter(|p| now < p.end) else {
            return Allowance::Bytes(EVERYTHING);
        };
        let mut scheduled = scheduled.lock().unwrap_or_else(PoisonError::into_inner);
        match scheduled.poll_allowance(now, idle) {
            Allowance::Nothing { until } => Allowance::Nothing { until: until.min(*end) },
            bytes => bytes,
        }
    }

    fn handle_moved(&self, bytes: Bytes) {
        if let Some(Running { scheduled, .. }) = self.running.get() {
            scheduled.lock().unwrap_or_else(PoisonError::into_inner).handle_moved(bytes);
        }
    }
}

impl<A> Debug for Paced<A> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "Paced({})", self.application)
    }
}

#[cfg(test)]
mod tests {
    use sweetspot_units::Duration;

    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    fn scheduled<A: Scheduled>(text: &str) -> A {
        let application: Application = text.parse().unwrap();
        let portion = Bytes::new(1000);
        A::new(Schedule::new(&application, at(0), portion).unwrap(), portion, 1)
    }

    /// The bytes moved from `from` to `until`, in ms, when polled as often as it requests.
    fn moved(one: &mut impl Scheduled, (from, until): (u64, u64), idle: bool) -> u64 {
        let (mut now, mut sum, mut idle) = (at(from), 0, idle);
        while now < at(until) {
            match one.poll_allowance(now, idle) {
                Allowance::Nothing { until } => now = until,
                Allowance::Bytes(bytes) => {
                    sum += bytes.get();
                    one.handle_moved(bytes);
                }
            }
            idle = false;
        }
        sum
    }

    #[test]
    fn readers_make_up_for_a_late_thread_but_not_an_empty_socket() {
        // 1000 bytes every 10 ms, none from 500 ms to 600 ms.
        let text = "rate=800kbit/s,pause=500ms+100ms";
        assert_eq!(moved(&mut scheduled::<Reader>(text), (0, 1000), true), 90_000 - 1000);
        let mut late = scheduled::<Reader>(text);
        moved(&mut late, (0, 100), true);
        // 20 reads, at 100 to 290 ms.
        assert_eq!(late.poll_allowance(at(295), false), Allowance::Bytes(Bytes::new(20_000)));
        late.handle_moved(Bytes::new(20_000));
        assert_eq!(late.poll_allowance(at(420), true), Allowance::Nothing { until: at(430) });
    }

    #[test]
    fn a_writer_sends_its_backlog_after_the_connection_was_full() {
        let mut writer = scheduled::<Writer>("rate=800kbit/s,pause=500ms+100ms");
        // Portions at 0, 10, ... 490 ms.
        assert_eq!(writer.poll_allowance(at(550), false), Allowance::Bytes(Bytes::new(50_000)));
        writer.handle_moved(Bytes::new(20_000));
        assert_eq!(writer.poll_allowance(at(599), false), Allowance::Bytes(Bytes::new(30_000)));
        writer.handle_moved(Bytes::new(30_000));
        assert_eq!(writer.poll_allowance(at(599), false), Allowance::Nothing { until: at(600) });
    }

    #[test]
    fn applications_with_only_pauses_run_unlimited_between_them() {
        let mut writer = scheduled::<Writer>("pause=1s+2s");
        assert_eq!(writer.poll_allowance(at(999), false), Allowance::Bytes(EVERYTHING));
        assert_eq!(writer.poll_allowance(at(1000), false), Allowance::Nothing { until: at(3000) });
    }

    #[test]
    fn no_application_pause_extends_beyond_the_end_of_the_run() {
        let application: Application = "pause=1s+100s".parse().unwrap();
        let paced = Paced::<Reader>::new(&application, Bytes::new(1000), 1).unwrap();
        assert_eq!(paced.poll_allowance(at(2000), false), Allowance::Bytes(EVERYTHING));
        paced.begin(at(0), at(5000));
        assert_eq!(paced.poll_allowance(at(2000), false), Allowance::Nothing { until: at(5000) });
        assert_eq!(paced.poll_allowance(at(5000), false), Allowance::Bytes(EVERYTHING));
    }
}
