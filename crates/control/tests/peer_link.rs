//! The laws of the datagrams between two ends that size a connection together.

#[path = "../../../fuzz/peer_link.rs"]
mod entry;

use proptest::prelude::*;
use sweetspot_control::{PeerLink, Received, SenderRequest, Transmit};
use sweetspot_protocol::probe::Steering;
use sweetspot_protocol::{Invitation, Inviting};
use sweetspot_sizing::{CongestionChoice, SenderReport, TrainRequest};
use sweetspot_units::{Bytes, Duration, Rate, Time};

proptest! {
    #[test]
    fn a_hostile_peer_cannot_amplify_beyond_the_train_budget(
        script in prop::collection::vec(any::<u8>(), 0..1000),
    ) {
        entry::peer_link(&script);
    }
}

fn ms(n: u64) -> Time {
    Time::from_nanos(1_000_000_000) + Duration::from_millis(n)
}

fn pair() -> (PeerLink, PeerLink) {
    let invitation = Invitation { port: 9, key: [7; 16] };
    let link = |end| PeerLink::new(&invitation, end, Bytes::new(28));
    (link(Inviting::Host), link(Inviting::Guest))
}

fn sent(link: &mut PeerLink) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| link.poll_transmit())
        .flat_map(|transmit| match transmit {
            Transmit::One(datagram) => vec![datagram],
            Transmit::Train(datagrams) => datagrams,
        })
        .collect()
}

fn carry(now: Time, from: &mut PeerLink, to: &mut PeerLink) -> Vec<Received> {
    let report = SenderReport::default();
    let arrive = |datagram: Vec<u8>| to.handle_datagram(now, now, &datagram, &report, Bytes::ZERO);
    sent(from).into_iter().filter_map(arrive).collect()
}

/// A pair of links that have received packets from each other.
fn connected_pair() -> (PeerLink, PeerLink) {
    let (mut host, mut guest) = pair();
    guest.handle_timeout(ms(0));
    carry(ms(20), &mut guest, &mut host);
    carry(ms(40), &mut host, &mut guest);
    assert!(host.is_up() && guest.is_up());
    (host, guest)
}

#[test]
fn a_guest_without_an_answer_gives_up_after_two_seconds() {
    let (mut host, mut guest) = pair();
    let mut punches = 0;
    for at in 0..50 {
        guest.handle_timeout(ms(100 * at));
        host.handle_timeout(ms(100 * at));
        punches += sent(&mut guest).len();
        assert!(sent(&mut host).is_empty(), "the host knows no address yet");
        assert_eq!(guest.has_failed(ms(100 * at)), at >= 20);
    }
    assert_eq!(punches, 20);
    assert!(host.has_failed(ms(5000)));
}

#[test]
fn either_end_sends_requests_as_the_receiver() {
    let (mut host, mut guest) = connected_pair();
    for host_receives in [true, false] {
        let (receiver, sender) = match host_receives {
            true => (&mut host, &mut guest),
            false => (&mut guest, &mut host),
        };
        receiver.handle_request(ms(50), &SenderRequest::Probe { sequence: 0 });
        let request = TrainRequest { packets: 5, size: Bytes::new(1500) };
        receiver.handle_request(ms(50), &SenderRequest::Train { id: 0, request });
        assert!(carry(ms(70), receiver, sender).is_empty());
        let got = carry(ms(90), sender, receiver);
        assert!(matches!(got[0], Received::Answer(answer) if answer.probe == 0));
        // The request was sent twice but takes effect once.
        let train = |index| match got[index] {
            Received::Train(packet, size) => (packet.index, size.get()),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            (1..got.len()).map(train).collect::<Vec<_>>(),
            (0..5).map(|n| (n, 1500)).collect::<Vec<_>>()
        );
    }
}

#[test]
fn steering_survives_loss_and_ends_when_the_receiver_releases_it() {
    let (mut host, mut guest) = connected_pair();
    let pacing = Some(Rate::from_mbit_per_second(50));
    let steering = Steering { pacing, congestion: CongestionChoice::Bbr };
    guest.handle_request(ms(100), &SenderRequest::Steer(steering));
    assert_eq!(sent(&mut guest).len(), 1, "lost");
    assert_eq!(host.steering(ms(100)), None);
    guest.handle_timeout(ms(150));
    assert_eq!(carry(ms(170), &mut guest, &mut host), [Received::Steer(steering)]);
    assert_eq!(host.steering(ms(5000)), Some(steering));
    // A repetition carries nothing new, but renews the lease.
    guest.handle_timeout(ms(5000));
    assert!(carry(ms(5020), &mut guest, &mut host).is_empty());
    assert_eq!(host.steering(ms(10_000)), Some(steering));
    assert_eq!(host.steering(ms(10_021)), None, "the lease has expired");
    guest.release(ms(10_030));
    assert_eq!(carry(ms(10_050), &mut guest, &mut host), [Received::Steer(Steering::default())]);
    // The last message is repeated after 50, 100, 200, 400 and 800 ms, and then no more.
    let repeats = (10_031..20_000).map(|at| {
        guest.handle_timeout(ms(at));
        sent(&mut guest).len()
    });
    assert_eq!(repeats.sum::<usize>(), 5);
}

#[test]
fn an_end_rejects_its_own_reflected_packets() {
    let (mut host, mut guest) = connected_pair();
    for link in [&mut host, &mut guest] {
        link.handle_request(ms(100), &SenderRequest::Probe { sequence: 0 });
        for datagram in sent(link) {
            assert!(!link.is_genuine(&datagram));
            let report = SenderReport::default();
            link.handle_datagram(ms(100), ms(100), &datagram, &report, Bytes::ZERO);
            assert!(sent(link).is_empty(), "a reflected packet gets no answer");
        }
    }
}
