//! The applications at both ends of a measured transfer, where they are not as fast as TCP.

use sweetspot_path::Random;
use sweetspot_scenario::{Application as Behaviour, Pace, Transfer};
use sweetspot_units::{Bytes, Deadline, Duration, Time};

use crate::random;

/// The shape of Pareto gaps between writes.
const PARETO_SHAPE: f64 = 1.5;

/// Reads what has arrived: packet by packet at its rate, all at once without one, nothing in a pause.
#[derive(Debug)]
pub(crate) struct Reader {
    behaviour: Behaviour,
    start: Time,
    /// Payload of a full packet: what one read takes.
    portion: Bytes,
    /// In order and not read.
    pub unread: Bytes,
    /// When it reads next.
    pub due: Deadline,
    /// The window for an application that has read everything, packets.
    pub window: u64,
}

impl Reader {
    /// The reader of `transfer`, whose segments carry `portion` and whose window is `window` packets; `None` where
    /// it reads at once.
    pub(crate) fn new(transfer: &Transfer, portion: Bytes, window: u64) -> Option<Reader> {
        let behaviour = &transfer.reader;
        (!behaviour.is_greedy()).then(|| Reader {
            behaviour: behaviour.clone(),
            start: Time::ZERO + transfer.start,
            portion,
            unread: Bytes::ZERO,
            due: Deadline::NEVER,
            window,
        })
    }

    /// `bytes` have arrived in order; how many of all that waits it reads at once.
    pub(crate) fn handle_arrival(&mut self, now: Time, bytes: Bytes) -> Bytes {
        self.unread += bytes;
        if self.due == Deadline::NEVER && self.unread > Bytes::ZERO {
            self.due = Deadline::at(self.next_read(now));
        }
        self.read(now)
    }

    /// Reads what is due to be read now.
    pub(crate) fn read(&mut self, now: Time) -> Bytes {
        let mut taken = Bytes::ZERO;
        while self.due.has_passed(now) && self.unread > Bytes::ZERO {
            let portion = match self.behaviour.pace {
                Some(_) => self.portion.min(self.unread),
                None => self.unread,
            };
            self.unread = self.unread.saturating_sub(portion);
            taken += portion;
            self.due = Deadline::at(self.next_read(now));
        }
        if self.unread == Bytes::ZERO {
            self.due = Deadline::NEVER;
        }
        taken
    }

    /// What it leaves of the window, packets.
    pub(crate) fn open(&self) -> u64 {
        let unread = self.unread.get().div_ceil(self.portion.get().max(1));
        self.window.saturating_sub(unread)
    }

    /// When it can have read a portion that it begins now.
    fn next_read(&self, now: Time) -> Time {
        let took = self.behaviour.pace.map_or(Duration::ZERO, |pace| self.portion / pace.rate());
        after_pause(&self.behaviour, self.start, now + took)
    }
}

/// Gives the sender what it is to send: packet by packet, or all but for pauses.
#[derive(Debug)]
pub(crate) struct Writer {
    behaviour: Behaviour,
    start: Time,
    /// Mean time between packets; `None`: everything between pauses.
    gap: Option<Duration>,
    /// Packets of the whole transfer; `None`: without end.
    total: Option<u64>,
    /// Packets that it has given one by one.
    written: u64,
    random: Random,
}

impl Writer {
    /// The writer of a transfer of `total` packets of `payload` bytes that starts at `start`; `None` where it
    /// always has data.
    pub(crate) fn new(
        behaviour: &Behaviour,
        start: Time,
        (payload, total): (Bytes, Option<u64>),
        random: Random,
    ) -> Option<Writer> {
        let gap = behaviour.pace.map(|pace| payload / pace.rate());
        let behaviour = (!behaviour.is_greedy()).then(|| behaviour.clone())?;
        Some(Writer { behaviour, start, gap, total, written: 0, random })
    }

    /// Whether nothing is left to write once so many packets are acknowledged.
    pub(crate) fn is_complete(&self, acknowledged: u64) -> bool {
        self.total.is_some_and(|total| acknowledged >= total)
    }

    /// How many packets it has given from the start until now, without end if `None`, and when it acts next.
    pub(crate) fn act(&mut self, now: Time) -> (Option<u64>, Deadline) {
        let at = now.since(self.start);
        let resumes = self.behaviour.paused_until(at).map(|until| self.start + until);
        match self.gap {
            None if resumes.is_some() => (Some(0), Deadline::from(resumes)),
            None => {
                let mut pauses = self.behaviour.pauses.iter().map(|pause| pause.from);
                let next = pauses.find(|from| *from > at).map(|from| self.start + from);
                (self.total, Deadline::from(next))
            }
            Some(_) if resumes.is_some() => (Some(self.written), Deadline::from(resumes)),
            Some(_) if self.total == Some(self.written) => (self.total, Deadline::NEVER),
            Some(mean) => {
                self.written += 1;
                let gap = self.draw(mean).max(Duration::from_nanos(1));
                (
                    Some(self.written),
                    Deadline::at(after_pause(&self.behaviour, self.start, now + gap)),
                )
            }
        }
    }

    fn draw(&mut self, mean: Duration) -> Duration {
        let seconds = mean.as_secs_f64();
        match self.behaviour.pace {
            Some(Pace::Poisson(_)) => {
                Duration::from_secs_f64(random::exponential(&mut self.random, seconds))
            }
            Some(Pace::Pareto(_)) => {
                Duration::from_secs_f64(random::pareto(&mut self.random, seconds, PARETO_SHAPE))
            }
            _ => mean,
        }
    }
}

/// `at`, or the end of the pause that holds it.
fn after_pause(behaviour: &Behaviour, start: Time, at: Time) -> Time {
    behaviour.paused_until(at.since(start)).map_or(at, |until| start + until)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn behaviour(text: &str) -> Behaviour {
        text.parse().expect("it describes an application")
    }

    fn reader(text: &str, window: u64) -> Reader {
        let text = format!(
            "duration = '1s'\n[path]\nrate = '1Mbit/s'\nrtt = '10ms'\nbuffer = '9pkt'\n\
             [[transfer]]\nreader = '{text}'"
        );
        let scenario = sweetspot_scenario::Scenario::parse(&text).expect("it is a scenario");
        Reader::new(&scenario.transfers[0], Bytes::new(1000), window).expect("it is slow")
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_reader_takes_its_rate_and_nothing_in_a_pause() {
        // 1000 bytes every 10 ms, and none from 50 ms to 150 ms.
        let text = "rate=800kbit/s,pause=50ms+100ms";
        let mut reader = reader(text, 100);
        assert_eq!(reader.handle_arrival(at(0), Bytes::new(100_000)), Bytes::ZERO);
        let mut taken = Bytes::ZERO;
        while let Some(due) = reader.due.time().filter(|due| *due <= at(200)) {
            taken += reader.read(due);
        }
        // At 10, 20, 30, 40; what would be read at 50 is read at 150; then 160, 170, 180, 190, 200.
        assert_eq!(taken, Bytes::new(10_000));
        assert_eq!(reader.unread, Bytes::new(90_000));
    }

    #[test]
    fn a_reader_without_a_rate_takes_all_when_its_pause_ends() {
        let mut reader = reader("pause=1s+1s", 10);
        assert_eq!(reader.handle_arrival(at(500), Bytes::new(3000)), Bytes::new(3000));
        assert_eq!(reader.handle_arrival(at(1500), Bytes::new(4500)), Bytes::ZERO);
        assert_eq!(reader.open(), 5);
        assert_eq!(reader.due.time(), Some(at(2000)));
        assert_eq!(reader.read(at(2000)), Bytes::new(4500));
        assert_eq!(reader.open(), 10);
    }

    #[test]
    fn writers_give_their_mean_rate() {
        for text in ["rate=8Mbit/s", "poisson=8Mbit/s", "pareto=8Mbit/s"] {
            let total = (Bytes::new(1000), None);
            let random = random::stream(1, 1, 1, 1);
            let mut writer =
                Writer::new(&behaviour(text), at(0), total, random).expect("it has a rate");
            let mut due = Deadline::at(at(0));
            let mut given = 0;
            while let Some(now) = due.time().filter(|now| *now < at(1_000_000)) {
                let (packets, next) = writer.act(now);
                (given, due) = (packets.expect("it never gives all"), next);
            }
            // 1000 packets/s for 1000 s. Pareto gaps of shape 1.5 have no variance: their mean is slow to come.
            let tolerance = if text.starts_with("pareto") { 0.2 } else { 0.01 };
            assert!((given as f64 / 1e6 - 1.0).abs() < tolerance, "{text}: {given}");
        }
    }

    #[test]
    fn a_writer_that_pauses_gives_all_before_and_after() {
        let random = random::stream(1, 1, 1, 1);
        let total = (Bytes::new(1000), Some(70));
        let mut writer =
            Writer::new(&behaviour("pause=1s+2s"), at(0), total, random).expect("it pauses");
        assert_eq!(writer.act(at(0)), (Some(70), Deadline::at(at(1000))));
        assert_eq!(writer.act(at(1000)), (Some(0), Deadline::at(at(3000))));
        assert_eq!(writer.act(at(3000)), (Some(70), Deadline::NEVER));
        assert!(!writer.is_complete(69) && writer.is_complete(70));
    }
}
