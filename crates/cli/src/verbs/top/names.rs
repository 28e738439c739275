//! Names of peers, asked for on demand and on a thread of their own: a resolver may take seconds.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// What is known of hosts' names.
#[derive(Default)]
pub struct HostNames {
    known: HashMap<IpAddr, Option<String>>,
    resolver: Option<Resolver>,
}

/// The questions to the resolver, and its answers.
type Resolver = (Sender<IpAddr>, Receiver<(IpAddr, Option<String>)>);

impl HostNames {
    /// Takes what the resolver has answered, and asks for those of `peers` that are new.
    pub fn ask(&mut self, peers: impl Iterator<Item = IpAddr>) {
        let (questions, answers) = self.resolver.get_or_insert_with(resolver);
        self.known.extend(answers.try_iter());
        for peer in peers {
            if !self.known.contains_key(&peer) && questions.send(peer).is_ok() {
                self.known.insert(peer, None);
            }
        }
    }

    /// The name of `peer` with its port, as far as it fits into `width` at a dot; else its address.
    pub fn of(&self, peer: SocketAddr, width: usize) -> String {
        let name = self.known.get(&peer.ip()).and_then(Option::as_ref);
        name.and_then(|name| fitting(name, peer.port(), width)).unwrap_or_else(|| peer.to_string())
    }
}

fn resolver() -> Resolver {
    let (questions, asked) = channel::<IpAddr>();
    let (answer, answers) = channel();
    thread::spawn(move || {
        for address in asked {
            let name = dns_lookup::lookup_addr(&address).ok();
            // What has no name answers with its address.
            let name = name.filter(|name| name.parse::<IpAddr>().is_err());
            if answer.send((address, name)).is_err() {
                return;
            }
        }
    });
    (questions, answers)
}

/// As many labels of a name as fit with the port; `None` if not even the first does.
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
    fn a_name_is_shortened_at_a_dot_and_its_port_kept() {
        let name = "mirror.example.org";
        assert_eq!(fitting(name, 443, 22).as_deref(), Some("mirror.example.org:443"));
        assert_eq!(fitting(name, 443, 21).as_deref(), Some("mirror.example:443"));
        assert_eq!(fitting(name, 443, 10).as_deref(), Some("mirror:443"));
        assert_eq!(fitting(name, 443, 9), None);
    }

    #[test]
    fn what_has_no_name_is_shown_by_its_address() {
        let peer: SocketAddr = "192.0.2.7:443".parse().unwrap();
        assert_eq!(HostNames::default().of(peer, 22), "192.0.2.7:443");
    }
}
