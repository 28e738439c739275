use sweetspot_units::{Bytes, Duration, Rate, Time};

/// A token bucket (RFC 2697 with one rate, RFC 3290 section 5.1.3): it holds up to `burst` bytes and fills at `rate`. Its
/// level is stored as a time, as in ITU-T I.371's generic cell rate algorithm: the time until the bucket is full stands for
/// the missing tokens.
#[derive(Debug, Clone)]
pub struct TokenBucket {
    rate: Rate,
    burst: Bytes,
    /// The time at which the bucket is full if no more tokens are used.
    full: Time,
    /// The rounding remainder of the filling times, in bit·ns/rate.
    remainder: u64,
}

impl TokenBucket {
    /// A full bucket. The rate is not zero.
    pub fn new(rate: Rate, burst: Bytes) -> TokenBucket {
        assert!(rate > Rate::ZERO, "a bucket needs a rate above zero");
        TokenBucket { rate, burst, full: Time::ZERO, remainder: rate.bits_per_second() - 1 }
    }

    /// The time at which the bucket held, or will hold, `size` bytes. A packet larger than the bucket must wait beyond the
    /// full bucket for the missing tokens, so a bucket of zero depth is a link of constant rate.
    pub fn holds_at(&self, now: Time, size: Bytes) -> Time {
        let (full, _) = self.after(now, size);
        now.max(full - self.burst / self.rate)
    }

    /// Takes `size` bytes at `now`.
    pub fn take(&mut self, now: Time, size: Bytes) {
        (self.full, self.remainder) = self.after(now, size);
    }

    /// The time at which the bucket is full again after `size` bytes were taken at `now`, and the remainder then.
    fn after(&self, now: Time, size: Bytes) -> (Time, u64) {
        let rate = self.rate.bits_per_second();
        let (start, carried) =
            if self.full < now { (now, rate - 1) } else { (self.full, self.remainder) };
        // size * 8 bit * 10^9 ns/s fits 64 bits up to 2 GB.
        let work = size.get() * 8_000_000_000 + carried;
        (start + Duration::from_nanos(work / rate), work % rate)
    }

    /// Changes the rate. The bucket keeps its tokens.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        assert!(rate > Rate::ZERO, "a bucket needs a rate above zero");
        let missing = self.full.since(now);
        self.full = now + missing.scaled(self.rate.as_f64() / rate.as_f64());
        self.remainder = rate.bits_per_second() - 1;
        self.rate = rate;
    }

    /// The rate at which it fills.
    pub fn rate(&self) -> Rate {
        self.rate
    }
}

/// Drops packets that exceed the bucket's tokens on arrival, and delays no packet.
#[derive(Debug, Clone)]
pub struct Policer(TokenBucket);

impl Policer {
    /// A policer with a full bucket. Packets larger than `burst` never pass.
    pub fn new(rate: Rate, burst: Bytes) -> Policer {
        Policer(TokenBucket::new(rate, burst))
    }

    /// Whether a packet of `size` that arrives at `now` passes.
    pub fn admits(&mut self, now: Time, size: Bytes) -> bool {
        let admitted = self.0.holds_at(now, size) <= now;
        if admitted {
            self.0.take(now, size);
        }
        admitted
    }
}
