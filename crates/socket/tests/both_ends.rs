//! Two ends size a connection together over loopback. Each copes with a peer that does not cooperate.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::thread;

use sweetspot_protocol::probe::ProbePacket;
use sweetspot_protocol::{Invitation, Inviting};
use sweetspot_socket::{
    AttachError, BothEnds, Bytes, Duration, InvitationError, Options, Pool, Reason, SizedSocket,
    SizingPhase, SocketError, now,
};

#[path = "common/mod.rs"]
mod common;
use common::{pair, pair_with_segments, wait_until};

fn with(both_ends: BothEnds) -> Options {
    Options { both_ends: Some(both_ends), ..Options::default() }
}

/// Transfers data until `is_done`.
fn carry_until(
    what: &str,
    from: &mut TcpStream,
    to: &mut TcpStream,
    mut is_done: impl FnMut() -> bool,
) {
    let (block, mut sink) = ([7; 10_000], [0; 10_000]);
    wait_until(what, || {
        from.write_all(&block).unwrap();
        to.read_exact(&mut sink).unwrap();
        is_done()
    });
}

fn answers(sized: &SizedSocket) -> bool {
    sized.report().unwrap().both_ends
}

#[test]
fn garbage_is_rejected_as_an_invitation() {
    let (client, _server) = pair();
    let (_, invitation) = BothEnds::invite(&client).unwrap();
    for cut in 0..invitation.len() {
        let error = BothEnds::join(&invitation[..cut]).unwrap_err();
        assert_eq!(error, InvitationError::Damaged);
    }
    let message = BothEnds::join(b"HTTP/1.1 200 OK").unwrap_err().to_string();
    assert!(message.starts_with("expected an invitation of 24 bytes"), "{message}");
}

#[test]
fn an_invitation_needs_a_connected_socket_and_serves_only_one() {
    let unconnected =
        socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    assert!(matches!(BothEnds::invite(&unconnected), Err(AttachError::NotConnected)));
    let ((client, _server), (other, _)) = (pair(), pair());
    let pool = Pool::new().unwrap();
    let both_ends = BothEnds::invite(&client).unwrap().0;
    let sized = pool.attach(&client, with(both_ends.clone())).unwrap();
    let again = pool.attach(&other, with(both_ends));
    assert!(matches!(again, Err(AttachError::UsedInvitation)));
    assert!(sized.report().is_ok() && pool.sockets() == 1);
}

#[test]
fn both_ends_exchange_probes_whichever_end_sends() {
    for inviter_sends in [true, false] {
        let (mut client, mut server) = pair_with_segments(1460);
        let (host, invitation) = BothEnds::invite(&client).unwrap();
        let host = SizedSocket::attach(&client, with(host)).unwrap();
        let guest =
            SizedSocket::attach(&server, with(BothEnds::join(&invitation).unwrap())).unwrap();
        let (from, to) =
            if inviter_sends { (&mut client, &mut server) } else { (&mut server, &mut client) };
        carry_until("an answer", from, to, || answers(&host) && answers(&guest));
        let receiver = if inviter_sends { &guest } else { &host };
        // Probes measure the RTT without the kernel's clock tick. On loopback it is too short for a limit to
        // matter.
        carry_until("a measurement", from, to, || {
            receiver.report().unwrap().reason == Some(Reason::ShortPath)
        });
    }
}

#[test]
fn a_host_whose_peer_does_not_join_falls_back_to_one_end() {
    let (mut client, mut server) = pair_with_segments(1460);
    let (both_ends, _) = BothEnds::invite(&server).unwrap();
    let sized = SizedSocket::attach(&server, with(both_ends)).unwrap();
    let began = now();
    carry_until("a fall back", &mut client, &mut server, || {
        let report = sized.report().unwrap();
        assert!(!report.both_ends);
        // `sobas` waits for its peer; `sobas:live` does not.
        report.phase == SizingPhase::Open
    });
    assert!(now().since(began) > Duration::from_secs(2));
}

#[test]
fn a_guest_without_its_host_falls_back_to_one_end() {
    let (mut client, mut server) = pair_with_segments(1460);
    let (host, invitation) = BothEnds::invite(&client).unwrap();
    drop(host);
    let sized = SizedSocket::attach(&server, with(BothEnds::join(&invitation).unwrap())).unwrap();
    carry_until("a fall back", &mut client, &mut server, || {
        sized.report().unwrap().phase == SizingPhase::Open
    });
    assert!(!answers(&sized));
}

#[test]
fn a_peer_that_detaches_or_dies_does_no_harm() {
    let (mut client, mut server) = pair_with_segments(1460);
    let (host, invitation) = BothEnds::invite(&client).unwrap();
    let host = SizedSocket::attach(&client, with(host)).unwrap();
    let guest = SizedSocket::attach(&server, with(BothEnds::join(&invitation).unwrap())).unwrap();
    carry_until("an answer", &mut client, &mut server, || answers(&guest));
    // The library detaches, but the connection stays.
    host.detach().unwrap();
    let until = now() + Duration::from_secs(2);
    carry_until("two seconds", &mut client, &mut server, || now() > until);
    assert!(guest.report().unwrap().received > Bytes::new(100_000));
    // As if the program were killed.
    socket2::SockRef::from(&client).set_linger(Some(std::time::Duration::ZERO)).unwrap();
    drop(client);
    wait_until("the end", || guest.report() == Err(SocketError::Closed));
}

/// A guest that knows the key, at another address.
struct KeyHolder {
    udp: UdpSocket,
    invitation: Invitation,
    host: SocketAddr,
}

impl KeyHolder {
    fn at(address: &str, invitation: &[u8], host: SocketAddr) -> KeyHolder {
        let invitation = Invitation::from_bytes(invitation).unwrap();
        let udp = UdpSocket::bind((address, 0)).unwrap();
        udp.set_nonblocking(true).unwrap();
        let host = SocketAddr::new(host.ip(), invitation.port);
        KeyHolder { udp, invitation, host }
    }

    fn send(&self, packet: &ProbePacket) {
        let datagram = self.invitation.authenticator(Inviting::Guest).close(packet, Bytes::new(72));
        self.udp.send_to(&datagram, self.host).unwrap();
    }

    /// Number of bytes received.
    fn received(&self) -> usize {
        let mut buffer = [0; 10_000];
        std::iter::from_fn(|| self.udp.recv(&mut buffer).ok()).sum()
    }
}

#[test]
fn a_key_holder_at_another_address_gets_no_answer() {
    let (mut client, mut server) = pair_with_segments(1460);
    let (host, invitation) = BothEnds::invite(&client).unwrap();
    let sized = SizedSocket::attach(&client, with(host)).unwrap();
    let thief = KeyHolder::at("127.0.0.2", &invitation, client.local_addr().unwrap());
    let (mut sequence, until) = (0, now() + Duration::from_secs(1));
    carry_until("a second", &mut client, &mut server, || {
        sequence += 1;
        thief.send(&ProbePacket::Punch { sequence });
        thief.send(&ProbePacket::Probe { sequence });
        thief.send(&ProbePacket::TrainRequest { train: sequence, packets: 10, payload: 1000 });
        now() > until
    });
    assert_eq!(thief.received(), 0);
    assert!(!answers(&sized));
}

#[test]
fn a_hostile_receiver_gets_trains_only_within_the_budget() {
    let (mut client, mut server) = pair_with_segments(1460);
    let (host, invitation) = BothEnds::invite(&client).unwrap();
    let sized = SizedSocket::attach(&client, with(host)).unwrap();
    let hostile = KeyHolder::at("127.0.0.1", &invitation, client.local_addr().unwrap());
    let (mut sequence, mut got, until) = (0, 0, now() + Duration::from_secs(3));
    carry_until("three seconds", &mut client, &mut server, || {
        for _ in 0..4 {
            sequence += 1;
            hostile.send(&ProbePacket::TrainRequest {
                train: sequence,
                packets: 100,
                payload: 1400,
            });
            got += hostile.received();
        }
        thread::yield_now();
        now() > until
    });
    let acked = sized.report().unwrap().acked.get() as usize;
    assert!(got > 100_000, "it does get trains: {got}");
    assert!(got <= 4_000_000 + acked / 10 + 10_000, "{got} bytes beside {acked}");
    sized.detach().unwrap();
}
