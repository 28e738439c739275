//! Detects whether this host or packet losses limit a sender.

use sweetspot_control::{LossWatch, SenderSample, loss_limited_rate};
use sweetspot_linux::tcp::Info;
use sweetspot_protocol::SenderLimit;
use sweetspot_sizing::CongestionChoice;
use sweetspot_units::{Duration, Rate, Time};

use crate::control::sender_link::LinkState;

/// Interval between checks.
const LIMIT_INTERVAL: Duration = Duration::from_millis(250);
/// Congestion control is the limit if its window is less than this share of the advertised one.
const CWND_SHARE: f64 = 0.7;
/// The send buffer is the limit if it was full for more than this share of the time.
const LIMITED_SHARE: f64 = 0.3;

pub(crate) struct LimitWatch {
    due: Time,
    /// Total time in which a full send buffer was the limit, summed over all connections.
    limited: Duration,
    losses: LossWatch,
    losses_are_random: bool,
}

impl LimitWatch {
    pub fn new(begin: Time) -> LimitWatch {
        LimitWatch {
            due: begin + LIMIT_INTERVAL,
            limited: Duration::ZERO,
            losses: LossWatch::default(),
            losses_are_random: false,
        }
    }

    /// Takes a sample of each connection. Every [`LIMIT_INTERVAL`] it returns the transfer's limit, if this end can tell, and
    /// the rate of one connection under that limit, if known. `wanted` is the congestion control that the receiver asks for.
    pub fn poll(
        &mut self,
        now: Time,
        states: &[LinkState<'_>],
        wanted: CongestionChoice,
    ) -> Option<(SenderLimit, Option<Rate>)> {
        self.sample(now, states);
        if now < self.due {
            return None;
        }
        let by = self.limit(now, states, wanted)?;
        Some((by, self.each(by, states)))
    }

    fn sample(&mut self, now: Time, states: &[LinkState<'_>]) {
        let infos = || states.iter().map(|state| &state.info);
        let count = |of: fn(&Info) -> u32| infos().map(|info| u64::from(of(info))).sum();
        let limited =
            |info: &Info| info.snd_wnd.is_none_or(|window| info.cwnd() < window.scaled(CWND_SHARE));
        let rtt = |of: fn(&Info) -> Duration| infos().map(of).min().unwrap_or_default();
        self.losses_are_random = self.losses.update(
            now,
            &SenderSample {
                rtt: rtt(|info| info.rtt),
                minimum_rtt: rtt(|info| info.min_rtt),
                segments: count(|info| info.data_segs_out),
                retransmitted: count(|info| info.total_retrans),
                cwnd_limited: infos().all(limited),
                streams: states.len() as u32,
            },
        );
    }

    fn limit(
        &mut self,
        now: Time,
        states: &[LinkState<'_>],
        wanted: CongestionChoice,
    ) -> Option<SenderLimit> {
        let times = states.iter().map(|state| state.info.sndbuf_limited);
        let limited = times.fold(Duration::ZERO, |a, b| a + b);
        let more = limited.saturating_sub(self.limited);
        let elapsed = now.since(self.due) + LIMIT_INTERVAL;
        (self.due, self.limited) = (now + LIMIT_INTERVAL, limited);
        let share = more.as_secs_f64() / (elapsed.as_secs_f64() * states.len() as f64);
        let uses = |state: &LinkState<'_>, choice| {
            state.link.congestion.is(state.link.channel.socket(), choice)
        };
        if wanted == CongestionChoice::Bbr && !states.iter().all(|state| uses(state, wanted)) {
            return Some(SenderLimit::Congestion);
        }
        // BBR does not slow down because of losses.
        let by_losses = |state| !uses(state, CongestionChoice::Bbr);
        if self.losses_are_random && states.iter().all(by_losses) {
            return Some(SenderLimit::Losses);
        }
        let full = states.iter().all(|state| state.link.send_buffer.is_at_its_limit());
        (share > LIMITED_SHARE && full).then_some(SenderLimit::SendBuffer)
    }

    fn each(&self, by: SenderLimit, states: &[LinkState<'_>]) -> Option<Rate> {
        let LinkState { link, info } = states.first()?;
        let each = match by {
            SenderLimit::SendBuffer => {
                let all: f64 = states.iter().map(|state| state.info.delivery_rate.as_f64()).sum();
                Rate::from_f64(all / states.len() as f64)
            }
            SenderLimit::Losses | SenderLimit::Congestion => {
                let is_reno = link.congestion.is(link.channel.socket(), CongestionChoice::Reno);
                loss_limited_rate(info.snd_mss, info.min_rtt, self.losses.share()?, is_reno)
            }
        };
        Some(each).filter(|each| each.as_f64() > 0.0)
    }
}
