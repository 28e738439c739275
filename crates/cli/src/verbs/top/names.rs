//! Names of peers, resolved on demand in a separate thread, because a lookup may take seconds.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// Known host names.
#[derive(Default)]
pub struct HostNames {
    known: HashMap<IpAddr, Option<String>>,
    resolver: Option<Resolver>,
}

/// Channels to and from the resolver's thread.
type Resolver = (Sender<IpAddr>, Receiver<(IpAddr, Option<String>)>);

impl HostNames {
    /// Takes the resolver's answers, and requests the names of new `peers`.
    pub fn request_names(&mut self, peers: impl Iterator<Item = IpAddr>) {
        let (questions, answers) = self.resolver.get_or_insert_with(resolver);
        self.known.extend(answers.try_iter());
        for peer in peers {
            if !self.known.contains_key(&peer) && questions.send(peer).is_ok() {
                self.known.insert(peer, None);
            }
        }
    }

    /// The name of `peer` with its port, cut at a dot to fit into `width`; otherwise its address.
    pub fn of(&self, peer: SocketAddr, width: usize) -> String {
        let name = self.known.get(&peer.ip()).and_then(Option::as_ref);
        name.and_then(|name| fitting(name, peer.port(), width)).unwrap_or_else(|| peer.to_string())
    }
}

fn resolver() -> Resolver {
    let (questions, question_receiver) = channel::<IpAddr>();
    let (answer, answers) = channel();
    thread::spawn(move || {
        for address in question_receiver {
            let name = dns_lookup::lookup_addr(&address).ok();
            // For a peer without a name, the resolver returns the address. The name is untrusted: the
            // owner of the address chooses it.
            let name = name.filter(|name| name.parse::<IpAddr>().is_err() && is_host_name(name));
            if answer.send((address, name)).is_err() {
                return;
            }
        }
    });
    (questions, answers)
}

/// Whether a name has only the characters of host names (RFC 952), and the underscore.
fn is_host_name(name: &str) -> bool {
    name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
}

/// As many labels of a name as fit together with the port; `None` if not even the first one does.
fn fitting(name: &str, port: u16, width: usize) -> Option<String> {
    let port = format!(":{port}");
    let fits = |name: &str| name.chars().count() + port.len() <= width;
    let shorter = name.rmatch_indices('.').map(|(at, _)| &name[..at]);
    let longest = [name].into_iter().chain(shorter).find(|part| fits(part))?;
    Some(format!("{longest}{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_shortened_at_a_dot_and_keeps_its_port() {
        let name = "mirror.example.org";
        assert_eq!(fitting(name, 443, 22).as_deref(), Some("mirror.example.org:443"));
        assert_eq!(fitting(name, 443, 21).as_deref(), Some("mirror.example:443"));
        assert_eq!(fitting(name, 443, 10).as_deref(), Some("mirror:443"));
        assert_eq!(fitting(name, 443, 9), None);
    }

    #[test]
    fn an_invalid_host_name_is_not_shown() {
        assert!(is_host_name("mirror-1.example.org"));
        for name in ["a\x1b[2J.example", "a b", "a\n", "a\u{202e}b", "ä.example"] {
            assert!(!is_host_name(name), "{name:?}");
        }
    }

    #[test]
    fn a_peer_without_a_name_is_shown_by_its_address() {
        let peer: SocketAddr = "192.0.2.7:443".parse().unwrap();
        assert_eq!(HostNames::default().of(peer, 22), "192.0.2.7:443");
    }
}
