/// Proportional Rate Reduction (RFC 6937 with its slow-start reduction bound): how many packets
/// each ACK of a recovery lets out, so that the window arrives at ssthresh without a silent half
/// round trip and without a burst.
///
/// All counts in packets. On every ACK ask [`Prr::handle_ack`], send at most so many packets,
/// retransmissions among them, and report them with [`Prr::handle_sent`].
#[derive(Debug, Clone, Copy)]
pub struct Prr {
    ssthresh: f64,
    /// RecoverFS: in flight when recovery began.
    flight: f64,
    delivered: f64,
    out: f64,
}

impl Prr {
    /// Recovery begins with `flight` packets (SND.NXT - SND.UNA) out, to end at `ssthresh`.
    pub fn new(ssthresh: f64, flight: u32) -> Prr {
        Prr { ssthresh, flight: f64::from(flight.max(1)), delivered: 0.0, out: 0.0 }
    }

    /// An ACK newly delivered `delivered` packets and leaves `pipe` in flight. How many may be
    /// sent (section 3.1).
    pub fn handle_ack(&mut self, delivered: u32, pipe: u32) -> u32 {
        let (delivered, pipe) = (f64::from(delivered), f64::from(pipe));
        self.delivered += delivered;
        let allowed = if pipe > self.ssthresh {
            // sndcnt = CEIL(prr_delivered * ssthresh / RecoverFS) - prr_out
            (self.delivered * self.ssthresh / self.flight).ceil() - self.out
        } else {
            // PRR-SSRB: limit = MAX(prr_delivered - prr_out, DeliveredData) + MSS
            let limit = (self.delivered - self.out).max(delivered) + 1.0;
            (self.ssthresh - pipe).min(limit).floor()
        };
        // The fast retransmit itself always goes out (RFC 9937 section 5).
        let least = if self.out == 0.0 { 1.0 } else { 0.0 };
        allowed.max(least) as u32
    }

    /// So many packets were sent: prr_out.
    pub fn handle_sent(&mut self, packets: u32) {
        self.out += f64::from(packets);
    }
}
