//! This end's statistics of the transfer: rows during the transfer, and totals at its end.

use std::os::fd::AsFd;
use std::sync::Arc;

use sweetspot_control::ROW_INTERVAL;
use sweetspot_control::series::{SeriesRecord, SeriesRow};
use sweetspot_linux::clock;
use sweetspot_linux::event_fd::wait_readable;
use sweetspot_linux::tcp::{Info, options};
use sweetspot_protocol::{Message, SenderSummary};
use sweetspot_sizing::CongestionChoice;
use sweetspot_units::{Bytes, Duration, Rate};

use super::Sending;
use super::steering::LastControl;
use crate::control::limit_watch::LimitWatch;
use crate::control::sender_link::{self, LinkState, SenderLink};
use crate::limits::BUSY_INTERVAL;
use crate::lock::lock;
use crate::observer::{Progress, TransferObserver};
use crate::wire::stall::StallWatch;
use crate::{Result, TransferError};

/// Interval between checks whether all content has left the send buffers.
const UNSENT_INTERVAL: Duration = Duration::from_millis(2);

impl Sending<'_> {
    /// Sends this end's totals as soon as all content has left. Waiting for the receiver's summary would cost another RTT,
    /// while a user waits at the connecting end. The totals do not include later retransmissions.
    pub(super) fn summarise_once_left(&self) -> Result<()> {
        let has_unsent = |link: &Arc<SenderLink>| {
            options::unsent(link.channel.socket()).is_ok_and(|unsent| unsent > Bytes::ZERO)
        };
        while lock(&self.links).iter().any(has_unsent) {
            if self.files.is_over() {
                return Ok(());
            }
            clock::sleep_until(clock::now() + UNSENT_INTERVAL);
        }
        self.channel.send_message(&Message::SenderSummary(self.closing()?))
    }

    pub(super) fn closing(&self) -> Result<SenderSummary> {
        let failed = || TransferError::system("TCP_INFO");
        let (mut segments, mut retransmitted, mut limits) = (0, 0, Vec::new());
        for link in lock(&self.links).iter() {
            let info = Info::read(link.channel.socket()).map_err(failed())?;
            segments += u64::from(info.data_segs_out);
            retransmitted += u64::from(info.total_retrans);
            let more = link.send_buffer.limits().into_iter();
            limits.extend(more.filter(|limit| !limits.contains(limit)).collect::<Vec<_>>());
        }
        Ok(SenderSummary {
            congestion: options::congestion(self.channel.socket()).map_err(failed())?.into(),
            segments,
            retransmitted_segments: retransmitted,
            limits: limits.into_iter().map(String::into).collect(),
            saved_bytes: self.files.saved().get(),
            unlisted: self.files.unlisted(),
        })
    }

    /// Emits a row of the time series every [`ROW_INTERVAL`], and reports this end's limit to the receiver.
    pub(super) fn sample(&self, observer: &mut dyn TransferObserver) {
        let begin = clock::now();
        let (mut due, mut last) = (begin + ROW_INTERVAL, (begin, Bytes::ZERO));
        let mut busy_at = begin + BUSY_INTERVAL;
        let mut limits = LimitWatch::new(begin);
        let mut stall = StallWatch::new(begin, self.files.so_far());
        let mut congestion = CongestionChoice::Own;
        while !self.over.is_set() {
            if wait_readable(&[self.event_fd.as_fd()], due).is_err() {
                return;
            }
            due += ROW_INTERVAL;
            let links = lock(&self.links).clone();
            let states: Vec<LinkState<'_>> =
                links.iter().filter_map(|link| LinkState::read(link).ok()).collect();
            let [LinkState { info: first, .. }, ..] = &states[..] else { return };
            let now = clock::now();
            let (done, files, totals) = self.files.so_far();
            if stall.is_stalled(now, (done, files, totals)) {
                return self.fail(TransferError::Stalled(self.channel.peer().to_string()));
            }
            let sum = |of: fn(&Info) -> Bytes| {
                states.iter().map(|state| of(&state.info)).fold(Bytes::ZERO, |a, b| a + b)
            };
            let count = |of: fn(&Info) -> u32| states.iter().map(|s| u64::from(of(&s.info))).sum();
            let bytes = self.files.acknowledged(sum(|info| info.bytes_acked));
            let goodput = bytes.saturating_sub(last.1) / now.since(last.0);
            last = (now, bytes);
            let control = lock(&self.last_control).clone();
            let before = std::mem::replace(&mut congestion, control.congestion);
            if let Some(note) = switched(before, &control).filter(|_| !self.is_congestion_named()) {
                observer.note(&note);
            }
            observer.line(&SeriesRecord::Row(SeriesRow {
                t_s: now.since(self.start).as_secs_f64(),
                bytes: bytes.get(),
                goodput_bps: goodput.as_f64(),
                window_bytes: first
                    .snd_wnd
                    .map(|_| sum(|i| i.snd_wnd.unwrap_or(Bytes::ZERO)).get()),
                rtt_s: Some(first.rtt.as_secs_f64()),
                phase: control.phase.clone(),
                pacing_bps: control.pacing.map(Rate::as_f64),
                cwnd_bytes: Some(sum(Info::cwnd).get()),
                retransmitted: Some(count(|info| info.total_retrans)),
                segments: Some(count(|info| info.data_segs_out)),
                timeouts: first.total_rto.map(|_| count(|info| info.total_rto.unwrap_or(0).into())),
            }));
            let present = self.files.present();
            observer.progress(&Progress { bytes, present, files, totals });
            if states.len() > 1 || self.options.compress {
                sender_link::bound_unsent(&states);
            }
            if let Some((by, each)) = limits.poll(now, &states, control.congestion) {
                let each_bps = each.map(Rate::bits_per_second);
                let _ = self.channel.queue_message(&Message::SenderLimit { by, each_bps });
            }
            if now >= busy_at {
                busy_at = now + BUSY_INTERVAL;
                let _ = self.channel.queue_message(&Message::Busy);
            }
        }
    }
}

/// The change of congestion control that the receiver asked for, if it differs from `before`.
fn switched(before: CongestionChoice, control: &LastControl) -> Option<String> {
    let to = match control.congestion {
        CongestionChoice::Own => "back to the sender's own congestion control",
        CongestionChoice::Reno => "to reno",
        CongestionChoice::Bbr => "to bbr",
    };
    let state = control.phase.as_deref().unwrap_or("unknown");
    (control.congestion != before)
        .then(|| format!("the receiver's sizing asks to switch {to}; state of the window: {state}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_congestion_control_switch_is_reported_with_the_window_state() {
        let control = |congestion| LastControl {
            congestion,
            phase: Some("paced".into()),
            ..LastControl::default()
        };
        let (own, bbr) = (CongestionChoice::Own, CongestionChoice::Bbr);
        assert_eq!(switched(own, &control(own)), None);
        assert_eq!(switched(bbr, &control(bbr)), None);
        let said = switched(own, &control(bbr)).unwrap();
        assert_eq!(said, "the receiver's sizing asks to switch to bbr; state of the window: paced");
        let back = switched(bbr, &control(own)).unwrap();
        assert!(back.contains("switch back to the sender's own"), "{back}");
    }
}
