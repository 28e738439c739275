//! The applications at both ends of a measured transfer, if they are slower than TCP.

use sweetspot_path::Random;
use sweetspot_scenario::{Application, Schedule, Transfer};
use sweetspot_units::{Bytes, Deadline, Duration, Time};

/// Reads received data: packet by packet at its rate, or all at once without a rate; nothing during a pause.
#[derive(Debug)]
pub(crate) struct Reader {
    schedule: Schedule,
    /// Payload of a full packet: the size of one read.
    portion: Bytes,
    /// Bytes in order and unread.
    pub unread: Bytes,
    /// Time of the next read.
    pub due: Deadline,
    /// The window for an application that has read everything, packets.
    pub window: u64,
}

impl Reader {
    /// The reader of `transfer`, which has segments of `portion` and a window of `window` packets; `None` if it reads at once.
    pub(crate) fn new(transfer: &Transfer, portion: Bytes, window: u64) -> Option<Reader> {
        let schedule = Schedule::new(&transfer.reader, Time::ZERO + transfer.start, portion)?;
        Some(Reader { schedule, portion, unread: Bytes::ZERO, due: Deadline::NEVER, window })
    }

    /// `bytes` have arrived in order. Returns the number of unread bytes that the application reads at once.
    pub(crate) fn handle_arrival(&mut self, now: Time, bytes: Bytes) -> Bytes {
        self.unread += bytes;
        if self.due == Deadline::NEVER && self.unread > Bytes::ZERO {
            self.due = Deadline::at(self.next_read(now));
        }
        self.read(now)
    }

    /// Reads the portions that are due.
    pub(crate) fn read(&mut self, now: Time) -> Bytes {
        let mut amount = Bytes::ZERO;
        while self.due.has_passed(now) && self.unread > Bytes::ZERO {
            let paced = self.schedule.is_paced();
            let portion = if paced { self.portion.min(self.unread) } else { self.unread };
            self.unread = self.unread.saturating_sub(portion);
            amount += portion;
            self.due = Deadline::at(self.next_read(now));
        }
        if self.unread == Bytes::ZERO {
            self.due = Deadline::NEVER;
        }
        amount
    }

    /// The open window, in packets.
    pub(crate) fn open(&self) -> u64 {
        let unread = self.unread.get().div_ceil(self.portion.get().max(1));
        self.window.saturating_sub(unread)
    }

    /// Earliest time at which it finishes reading a portion that it starts now.
    fn next_read(&self, now: Time) -> Time {
        // Readers have no random gaps.
        self.schedule.next_turn(now, || 0.0)
    }
}

/// Passes data to the sender: packet by packet, or everything at once, except during pauses.
#[derive(Debug)]
pub(crate) struct Writer {
    schedule: Schedule,
    /// Packets of the whole transfer; `None`: unlimited.
    total: Option<u64>,
    written: u64,
    random: Random,
}

impl Writer {
    /// The writer of a transfer of `total` packets of `payload` bytes that starts at `start`; `None` if the application always
    /// has data.
    pub(crate) fn new(
        application: &Application,
        start: Time,
        (payload, total): (Bytes, Option<u64>),
        random: Random,
    ) -> Option<Writer> {
        let schedule = Schedule::new(application, start, payload)?;
        Some(Writer { schedule, total, written: 0, random })
    }

    /// Whether all data are written and acknowledged, once `acknowledged` packets are.
    pub(crate) fn is_complete(&self, acknowledged: u64) -> bool {
        self.total.is_some_and(|total| acknowledged >= total)
    }

    /// Returns how many packets the application has written since the start (`None`: unlimited), and the time of its next
    /// action.
    pub(crate) fn act(&mut self, now: Time) -> (Option<u64>, Deadline) {
        let resumes = self.schedule.resumes(now);
        if !self.schedule.is_paced() {
            return match resumes {
                Some(_) => (Some(0), Deadline::from(resumes)),
                None => (self.total, Deadline::from(self.schedule.next_pause(now))),
            };
        }
        if resumes.is_some() {
            return (Some(self.written), Deadline::from(resumes));
        }
        if self.total == Some(self.written) {
            return (self.total, Deadline::NEVER);
        }
        self.written += 1;
        // No two packets at the same time.
        let after = now + Duration::from_nanos(1);
        let next = self.schedule.next_turn(now, || self.random.unit());
        (Some(self.written), Deadline::at(next.max(after)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn behaviour(text: &str) -> Application {
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
    fn a_reader_reads_at_its_rate_and_not_during_a_pause() {
        // 1000 bytes every 10 ms, and none from 50 ms to 150 ms.
        let text = "rate=800kbit/s,pause=50ms+100ms";
        let mut reader = reader(text, 100);
        assert_eq!(reader.handle_arrival(at(0), Bytes::new(100_000)), Bytes::ZERO);
        let mut amount = Bytes::ZERO;
        while let Some(due) = reader.due.time().filter(|due| *due <= at(200)) {
            amount += reader.read(due);
        }
        // Reads at 10, 20, 30 and 40 ms; the read due at 50 happens at 150; then at 160, 170, 180, 190 and 200 ms.
        assert_eq!(amount, Bytes::new(10_000));
        assert_eq!(reader.unread, Bytes::new(90_000));
    }

    #[test]
    fn a_reader_without_a_rate_reads_everything_after_its_pause() {
        let mut reader = reader("pause=1s+1s", 10);
        assert_eq!(reader.handle_arrival(at(500), Bytes::new(3000)), Bytes::new(3000));
        assert_eq!(reader.handle_arrival(at(1500), Bytes::new(4500)), Bytes::ZERO);
        assert_eq!(reader.open(), 5);
        assert_eq!(reader.due.time(), Some(at(2000)));
        assert_eq!(reader.read(at(2000)), Bytes::new(4500));
        assert_eq!(reader.open(), 10);
    }

    #[test]
    fn writers_reach_their_mean_rate() {
        for text in ["rate=8Mbit/s", "poisson=8Mbit/s", "pareto=8Mbit/s"] {
            let total = (Bytes::new(1000), None);
            let random = crate::random::stream(1, 1, 1, 1);
            let mut writer =
                Writer::new(&behaviour(text), at(0), total, random).expect("it has a rate");
            let mut due = Deadline::at(at(0));
            let mut given = 0;
            while let Some(now) = due.time().filter(|now| *now < at(1_000_000)) {
                let (packets, next) = writer.act(now);
                (given, due) = (packets.expect("it never gives all"), next);
            }
            // 1000 packets/s for 1000 s. Pareto gaps of shape 1.5 have infinite variance, so their mean converges slowly.
            let tolerance = if text.starts_with("pareto") { 0.2 } else { 0.01 };
            assert!((given as f64 / 1e6 - 1.0).abs() < tolerance, "{text}: {given}");
        }
    }

    #[test]
    fn a_writer_without_a_rate_writes_everything_outside_its_pauses() {
        let random = crate::random::stream(1, 1, 1, 1);
        let total = (Bytes::new(1000), Some(70));
        let mut writer =
            Writer::new(&behaviour("pause=1s+2s"), at(0), total, random).expect("it pauses");
        assert_eq!(writer.act(at(0)), (Some(70), Deadline::at(at(1000))));
        assert_eq!(writer.act(at(1000)), (Some(0), Deadline::at(at(3000))));
        assert_eq!(writer.act(at(3000)), (Some(70), Deadline::NEVER));
        assert!(!writer.is_complete(69) && writer.is_complete(70));
    }
}
