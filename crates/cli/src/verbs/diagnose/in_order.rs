//! Packets of a device in the order of their times.

use sweetspot_units::{Duration, Time};

/// The longest that a busy CPU keeps a packet from the tap after the kernel timed it, while another CPU passes later ones on.
const LONGEST_DELAY: Duration = Duration::from_millis(50);

/// A packet, with its length before it was cut.
#[derive(Debug)]
pub struct Frame {
    pub arrived: Time,
    pub bytes: Box<[u8]>,
    pub length: usize,
}

/// Packets that wait for earlier ones.
#[derive(Debug, Default)]
pub struct InOrder {
    waiting: Vec<Frame>,
}

impl InOrder {
    pub fn add(&mut self, frame: Frame) {
        self.waiting.push(frame);
    }

    /// Passes on the packets before which none can come any more.
    pub fn pass_on(&mut self, work: &mut dyn FnMut(Frame)) {
        let newest = self.waiting.iter().map(|frame| frame.arrived).max();
        let until = newest.map(|newest| newest.since(Time::ZERO).saturating_sub(LONGEST_DELAY));
        self.pass_until(until.map_or(Time::ZERO, |until| Time::ZERO + until), work);
    }

    /// Passes on all packets.
    pub fn pass_all(&mut self, work: &mut dyn FnMut(Frame)) {
        self.pass_until(Time::MAX, work);
    }

    fn pass_until(&mut self, until: Time, work: &mut dyn FnMut(Frame)) {
        // Packets of equal time stay in the order in which they came.
        self.waiting.sort_by_key(|frame| frame.arrived);
        let ready = self.waiting.partition_point(|frame| frame.arrived <= until);
        self.waiting.drain(..ready).for_each(work);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_of_a_busy_cpu_takes_its_place_among_the_others() {
        let mut packets = InOrder::default();
        let mut passed = Vec::new();
        for ms in [10, 40, 20, 100] {
            let arrived = Time::ZERO + Duration::from_millis(ms);
            packets.add(Frame { arrived, bytes: Box::default(), length: 0 });
        }
        let mut work =
            |frame: Frame| passed.push(frame.arrived.since(Time::ZERO).as_micros() / 1000);
        packets.pass_on(&mut work);
        packets.pass_all(&mut work);
        assert_eq!(passed, [10, 20, 40, 100]);
    }

    #[test]
    fn packets_wait_for_those_that_may_still_come() {
        let mut packets = InOrder::default();
        for ms in [10, 61] {
            let arrived = Time::ZERO + Duration::from_millis(ms);
            packets.add(Frame { arrived, bytes: Box::default(), length: 0 });
        }
        let mut passed = 0;
        packets.pass_on(&mut |_| passed += 1);
        assert_eq!(passed, 1);
        packets.pass_all(&mut |_| passed += 1);
        assert_eq!(passed, 2);
    }
}
