use std::os::fd::AsFd;

use sweetspot_sizing::{CongestionChoice, CongestionState, SenderReport};
use sweetspot_units::Rate;

use super::{Info, options};

/// The lowest pacing rate that a receiver may request: one full packet per second.
pub const MIN_PACE: Rate = Rate::from_bits_per_second(12_000);

/// The value of a slow-start threshold that was never set (TCP_INFINITE_SSTHRESH, include/net/tcp.h).
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// A sender's congestion control, which the receiver may switch unless the user chose it.
#[derive(Debug)]
pub struct SenderCongestion {
    /// The initial congestion control; `None` if the user chose it, so that it stays.
    own: Option<String>,
}

/// How a sender sends: its pacing rate, and the congestion control that the receiver requests.
pub type Pacing = (Option<Rate>, CongestionChoice);

impl SenderCongestion {
    /// The congestion control of `socket`. `named`: the user chose it.
    pub fn new(socket: impl AsFd, named: bool) -> SenderCongestion {
        SenderCongestion { own: if named { None } else { options::congestion(socket).ok() } }
    }

    /// Switches to another congestion control. If the kernel does not offer it, the current one stays.
    pub fn switch(&self, socket: impl AsFd, to: CongestionChoice) {
        let Some(own) = &self.own else { return };
        let name = match to {
            CongestionChoice::Own => own,
            CongestionChoice::Reno => "reno",
            CongestionChoice::Bbr => "bbr",
        };
        let _ = options::set_congestion(socket, name);
    }

    /// Switches the congestion control when a receiver requests a change. The caller then sets the pacing rate.
    pub fn follow(&self, socket: impl AsFd, before: Pacing, after: Pacing) {
        let stays = before.1 == after.1;
        if stays && after.1.restarts_on_pacing(before.0, after.0) {
            self.switch(&socket, CongestionChoice::Own);
        }
        if after.1 != CongestionChoice::Own || !stays {
            self.switch(&socket, after.1);
        }
    }

    /// Whether `socket` uses the chosen congestion control. Always true for the socket's own.
    pub fn is(&self, socket: impl AsFd, chosen: CongestionChoice) -> bool {
        let now = options::congestion(socket);
        match chosen {
            CongestionChoice::Own => true,
            CongestionChoice::Reno => now.is_ok_and(|now| now == "reno"),
            CongestionChoice::Bbr => now.is_ok_and(|now| now == "bbr"),
        }
    }
}

/// A sender's report to the receiver's controller. `starved`: the connection ran out of data to send since the last
/// report.
pub fn sender_report(info: &Info, starved: bool) -> SenderReport {
    SenderReport {
        retransmitted: info.total_retrans.into(),
        cwnd: info.cwnd(),
        ssthresh: (info.snd_ssthresh < INFINITE_SSTHRESH)
            .then(|| info.snd_mss * u64::from(info.snd_ssthresh)),
        in_flight: info.snd_mss * u64::from(info.unacked),
        delivery_rate: info.delivery_rate,
        app_limited: info.delivery_rate_app_limited,
        busy: info.busy_time,
        window_limited: info.rwnd_limited,
        minimum_rtt: info.min_rtt,
        state: state(info.ca_state),
        reordering: info.reordering,
        dsacks: info.dsack_dups.unwrap_or(0),
        marked: info.delivered_ce.unwrap_or(0),
        starved,
    }
}

/// `enum tcp_ca_state` (include/uapi/linux/tcp.h). An unknown state of a newer kernel counts as the normal one.
fn state(number: u8) -> CongestionState {
    match number {
        1 => CongestionState::Disorder,
        2 => CongestionState::Reduced,
        3 => CongestionState::Recovery,
        4 => CongestionState::Loss,
        _ => CongestionState::Open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sysctl;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use sweetspot_units::{Bytes, Duration};

    const CHOICES: [(CongestionChoice, &str); 2] =
        [(CongestionChoice::Bbr, "bbr"), (CongestionChoice::Reno, "reno")];

    fn socket() -> TcpStream {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        TcpStream::connect(listener.local_addr().unwrap()).unwrap()
    }

    #[test]
    fn an_available_congestion_control_is_applied_and_later_reverted() {
        let socket = socket();
        let own = options::congestion(&socket).unwrap();
        let available = sysctl::available_congestion_controls().unwrap();
        let congestion = SenderCongestion::new(&socket, false);
        for (choice, name) in CHOICES {
            congestion.switch(&socket, choice);
            if available.iter().any(|a| a == name) {
                assert_eq!(options::congestion(&socket).unwrap(), name);
            }
            congestion.switch(&socket, CongestionChoice::Own);
            assert_eq!(options::congestion(&socket).unwrap(), own);
        }
    }

    #[test]
    fn an_explicit_congestion_control_stays() {
        let socket = socket();
        let named = options::congestion(&socket).unwrap();
        let congestion = SenderCongestion::new(&socket, true);
        for (choice, _) in CHOICES {
            congestion.switch(&socket, choice);
            assert_eq!(options::congestion(&socket).unwrap(), named);
        }
    }

    #[test]
    fn a_sender_without_loss_reports_state_open_and_no_ssthresh() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut server = listener.accept().unwrap().0;
        client.write_all(&[1; 100_000]).unwrap();
        server.read_exact(&mut vec![0; 100_000]).unwrap();
        let report = sender_report(&Info::read(&client).unwrap(), true);
        assert_eq!((report.retransmitted, report.marked, report.dsacks), (0, 0, 0));
        assert_eq!((report.state, report.ssthresh), (CongestionState::Open, None));
        assert!(report.cwnd > Bytes::ZERO && report.starved);
        assert!(report.minimum_rtt > Duration::ZERO && report.minimum_rtt < Duration::from_secs(1));
    }
}
