use std::net::TcpStream;

use sweetspot_linux::tcp::options;
use sweetspot_sizing::CongestionChoice;

/// A sender's congestion control, which the receiver may switch unless a user chose it.
pub(crate) struct SenderCongestion {
    /// The congestion control at the beginning; `None` if a user chose it, so that it stays.
    own: Option<String>,
}

impl SenderCongestion {
    /// The congestion control of `socket`. A user chose it if it was `named`.
    pub fn new(socket: &TcpStream, named: bool) -> SenderCongestion {
        SenderCongestion { own: if named { None } else { options::congestion(socket).ok() } }
    }

    /// Switches to another congestion control. If the kernel does not offer it, the one in use stays.
    pub fn switch(&self, socket: &TcpStream, to: CongestionChoice) {
        let Some(own) = &self.own else { return };
        let name = match to {
            CongestionChoice::Own => own,
            CongestionChoice::Reno => "reno",
            CongestionChoice::Bbr => "bbr",
        };
        let _ = options::set_congestion(socket, name);
    }

    /// Whether `socket` uses the chosen congestion control. Its own always counts.
    pub fn is(&self, socket: &TcpStream, chosen: CongestionChoice) -> bool {
        let now = options::congestion(socket);
        match chosen {
            CongestionChoice::Own => true,
            CongestionChoice::Reno => now.is_ok_and(|now| now == "reno"),
            CongestionChoice::Bbr => now.is_ok_and(|now| now == "bbr"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use sweetspot_linux::sysctl;

    const CHOICES: [(CongestionChoice, &str); 2] =
        [(CongestionChoice::Bbr, "bbr"), (CongestionChoice::Reno, "reno")];

    fn socket() -> TcpStream {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        TcpStream::connect(listener.local_addr().unwrap()).unwrap()
    }

    #[test]
    fn a_choice_is_obeyed_where_the_kernel_has_it_and_taken_back_at_the_end() {
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
    fn one_that_was_named_stays() {
        let socket = socket();
        let named = options::congestion(&socket).unwrap();
        let congestion = SenderCongestion::new(&socket, true);
        for (choice, _) in CHOICES {
            congestion.switch(&socket, choice);
            assert_eq!(options::congestion(&socket).unwrap(), named);
        }
    }
}
