use sweetspot_path::Pipe;
use sweetspot_units::{Duration, Rate, Time};

use crate::packet::Packet;

/// The link between a host and its router, one direction: it serialises and delays and has room
/// for all, so that when a packet will be through is known when it enters.
#[derive(Debug)]
pub(crate) struct Access {
    rate: u64,
    delay: Duration,
    /// When the last packet's last bit has been sent.
    free: Time,
    /// Serialisation time of a size, kept because sizes repeat.
    known: (u16, Duration),
    pipe: Pipe<Packet>,
}

impl Access {
    pub(crate) fn new(rate: Rate, delay: Duration) -> Access {
        Access {
            rate: rate.bits_per_second(),
            delay,
            free: Time::ZERO,
            known: (0, Duration::ZERO),
            pipe: Pipe::default(),
        }
    }

    /// A packet enters. Gives back when it comes out if it is the only one inside, so that an
    /// event must be asked for.
    #[inline]
    pub(crate) fn enter(&mut self, now: Time, packet: Packet) -> Option<Time> {
        if packet.size != self.known.0 {
            let nanos = u64::from(packet.size) * 8_000_000_000 / self.rate;
            self.known = (packet.size, Duration::from_nanos(nanos));
        }
        self.free = self.free.max(now) + self.known.1;
        let due = self.free + self.delay;
        let alone = self.pipe.poll_timeout().is_none();
        self.pipe.handle_entry(due, packet);
        alone.then_some(due)
    }

    /// The packet that is due now.
    #[inline]
    pub(crate) fn exit(&mut self, now: Time) -> Option<Packet> {
        self.pipe.poll_exit(now).map(|(_, packet)| packet)
    }

    /// When the next one is.
    #[inline]
    pub(crate) fn due(&self) -> Option<Time> {
        self.pipe.poll_timeout()
    }

    pub(crate) fn conserves(&self) -> bool {
        self.pipe.counters().conserved()
    }
}
