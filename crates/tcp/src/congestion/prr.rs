/// Proportional Rate Reduction (RFC 6937) in Linux's flavour (`tcp_cwnd_reduction`).
///
/// Decides how many packets each ACK of a recovery releases, so that the window reaches ssthresh without half
/// a round trip of silence and without a burst. Linux uses the congestion window for RecoverFS. It releases
/// slow start's extra packet only on an ACK that advances and reports no further loss. All counts are in
/// packets. [`Prr::handle_ack`] returns the maximum number of packets to send after an ACK, retransmissions
/// included; pass the number actually sent to [`Prr::handle_sent`].
#[derive(Debug, Clone, Copy)]
pub struct Prr {
    ssthresh: f64,
    /// prior_cwnd, used instead of RecoverFS.
    prior_cwnd: f64,
    delivered: f64,
    out: f64,
}

impl Prr {
    /// A recovery that begins with a window of `prior_cwnd` packets and ends with `ssthresh`.
    pub fn new(ssthresh: f64, prior_cwnd: u32) -> Prr {
        Prr { ssthresh, prior_cwnd: f64::from(prior_cwnd.max(1)), delivered: 0.0, out: 0.0 }
    }

    /// Handles an ACK that newly delivered `delivered` packets and leaves `pipe` in flight. `clean`: the ACK
    /// advances SND.UNA and reports no new loss. Returns the number of packets that may be sent (section
    /// 3.1).
    pub fn handle_ack(&mut self, delivered: u32, pipe: u32, clean: bool) -> u32 {
        let (delivered, pipe) = (f64::from(delivered), f64::from(pipe));
        self.delivered += delivered;
        let allowed = if pipe > self.ssthresh {
            // sndcnt = CEIL(prr_delivered * ssthresh / RecoverFS) - prr_out
            (self.delivered * self.ssthresh / self.prior_cwnd).ceil() - self.out
        } else {
            // limit = MAX(prr_delivered - prr_out, DeliveredData), + MSS in PRR-SSRB
            let extra = if clean { 1.0 } else { 0.0 };
            let limit = (self.delivered - self.out).max(delivered) + extra;
            (self.ssthresh - pipe).min(limit).floor()
        };
        // The fast retransmit itself always goes out (RFC 9937 section 5).
        let min = if self.out == 0.0 { 1.0 } else { 0.0 };
        allowed.max(min) as u32
    }

    /// Counts the packets that were sent: prr_out.
    pub fn handle_sent(&mut self, packets: u32) {
        self.out += f64::from(packets);
    }
}
