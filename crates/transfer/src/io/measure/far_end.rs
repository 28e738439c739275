//! Who listens carries out the orders of who measures.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::Arc;

use sweetspot_linux::clock;
use sweetspot_linux::event_fd::wait_readable;
use sweetspot_linux::udp::Udp;
use sweetspot_measure::{Arrival, Spacing};
use sweetspot_protocol::probe::PacketAuthenticator;
use sweetspot_protocol::record::{MAX_ARRIVALS, Record, StreamArrival};
use sweetspot_protocol::{MeasureMessage, Message};
use sweetspot_units::{Bytes, Duration, Time};

use super::datagrams::{Datagrams, Stream, receiving};
use super::fill::{drain, fill};
use super::{WORD_TIMEOUT, next_word};
use crate::TransferError;
use crate::io::channel::Channel;
use crate::io::link::{FrameReader, Link};
use crate::io::udp_demux::{Registered, UdpDemux};

const PREPARING: &str = "preparing datagrams";
/// How long the first datagram is waited for.
const PUNCH_TIMEOUT: Duration = Duration::from_secs(3);
/// Nobody needs longer streams, larger packets or longer loads: what asks for them is no measurement of ours.
const MAX_PACKETS: u32 = 200_000;
const MAX_PAYLOAD_BYTES: u32 = 9216 - 28;
const LONGEST: Duration = Duration::from_secs(60);
/// A measurer that gives no order for so long is gone: it may itself send for up to [`LONGEST`].
const ORDER_TIMEOUT: Duration = Duration::from_secs(90);

/// Serves one connection of who measures: that with the orders, or one that is `to_fill`.
pub(crate) fn serve(demux: &UdpDemux, link: Link, to_fill: bool) -> Result<(), TransferError> {
    let channel = Arc::clone(&link.channel);
    let result = if to_fill {
        serve_load(link)
    } else {
        match open_datagrams(demux, &link)? {
            Some((echoes, streams)) => serve_orders(link, &echoes, &streams),
            None => channel.say(&Message::Measure(MeasureMessage::Ready { datagrams: false })),
        }
    };
    match result {
        // It is through.
        Err(TransferError::PeerGone { .. }) | Ok(()) => {
            channel.sever();
            Ok(())
        }
        Err(error) => {
            channel.part(&error);
            Err(error)
        }
    }
}

/// Sockets to where the measurer's echoes and streams come from; `None` if none comes.
fn open_datagrams(
    demux: &UdpDemux,
    link: &Link,
) -> Result<Option<(Datagrams, Datagrams)>, TransferError> {
    let authenticators =
        [PacketAuthenticator::new(&link.session), PacketAuthenticator::of_streams(&link.session)];
    let deadline = clock::now() + PUNCH_TIMEOUT;
    let peer = link.channel.socket().peer_addr().map_err(TransferError::system(PREPARING))?;
    // Both are waited for until one deadline.
    let open = || -> std::io::Result<Option<(Datagrams, Datagrams)>> {
        let [first, second] = authenticators;
        let registered = [demux.register(first.clone())?, demux.register(second.clone())?];
        let [Some(echoes), Some(streams)] =
            registered.each_ref().map(|r| peer_address(r, peer.ip(), deadline))
        else {
            return Ok(None);
        };
        let connected = |to: SocketAddr, authenticator| {
            let udp = Udp::bind_shared(link.channel.socket().local_addr()?)?;
            udp.connect(to)?;
            Datagrams::new(udp, authenticator)
        };
        Ok(Some((connected(echoes, first)?, connected(streams, second)?)))
    };
    open().map_err(TransferError::system(PREPARING))
}

/// Where the datagrams of a registration come from; `None` if none comes from the host `peer` until `deadline`. The source of a
/// datagram can be forged: whoever measures could let streams be sent to others.
fn peer_address(registered: &Registered<'_>, peer: IpAddr, deadline: Time) -> Option<SocketAddr> {
    let registration = &registered.registration;
    loop {
        if let Some(from) = registration.peer_address().filter(|from| is_from(*from, peer)) {
            return Some(from);
        }
        if clock::now() >= deadline {
            return None;
        }
        let _ = wait_readable(&[registration.event_fd.as_fd()], deadline);
    }
}

/// Whether `from` is the host `peer`. (A NAT keeps to one address for all that a host sends: RFC 4787, REQ-2.)
fn is_from(from: SocketAddr, peer: IpAddr) -> bool {
    from.ip().to_canonical() == peer.to_canonical()
}

fn serve_orders(
    mut link: Link,
    echoes: &Datagrams,
    streams: &Datagrams,
) -> Result<(), TransferError> {
    let channel = Arc::clone(&link.channel);
    channel.say(&Message::Measure(MeasureMessage::Ready { datagrams: true }))?;
    receiving([echoes, streams], || orders(&mut link.frames, &channel, streams))
}

fn orders(
    frames: &mut FrameReader,
    channel: &Channel,
    datagrams: &Datagrams,
) -> Result<(), TransferError> {
    loop {
        match next_word(frames, clock::now() + ORDER_TIMEOUT)? {
            MeasureMessage::Send { stream, packets, payload_bytes, gap_ns, random, pair_ns } => {
                if is_excessive(packets, payload_bytes, gap_ns.max(pair_ns)) {
                    return Err(TransferError::PeerFailed("it asked for too long a stream".into()));
                }
                let spacing = match (random, pair_ns) {
                    (false, _) => Spacing::Even,
                    (true, 0) => Spacing::Poisson,
                    (true, apart) => Spacing::PoissonPairs(Duration::from_nanos(apart)),
                };
                let gap = Duration::from_nanos(gap_ns);
                let ordered = Stream { number: stream, packets, gap, spacing };
                datagrams.send_stream(ordered, Bytes::new(payload_bytes.into()));
                channel.say(&Message::Measure(MeasureMessage::Sent { stream, packets }))?;
            }
            MeasureMessage::Report { stream, packets } => {
                let arrivals = datagrams.take_arrivals(stream, packets, WORD_TIMEOUT / 2);
                for batch in arrivals.chunks(MAX_ARRIVALS) {
                    channel.tell(&Record::Arrivals(batch.iter().map(arrival).collect()))?;
                }
                channel.say(&Message::Measure(MeasureMessage::Reported { stream }))?;
            }
            // Loads have connections of their own.
            _ => return Err(TransferError::PeerFailed("it gave an order out of order".into())),
        }
    }
}

/// Whether no measurement of ours asks for such a stream.
fn is_excessive(packets: u32, payload_bytes: u32, gap_ns: u64) -> bool {
    packets > MAX_PACKETS
        || payload_bytes > MAX_PAYLOAD_BYTES
        || gap_ns.saturating_mul(packets.into()) > LONGEST.as_nanos()
}

fn arrival(arrival: &Arrival) -> StreamArrival {
    StreamArrival {
        index: arrival.index,
        sent_ns: arrival.sent.as_nanos(),
        received_ns: arrival.received.as_nanos(),
    }
}

fn serve_load(mut link: Link) -> Result<(), TransferError> {
    match next_word(&mut link.frames, clock::now() + WORD_TIMEOUT)? {
        MeasureMessage::Fill { duration_ms, most_bytes } => {
            let duration = Duration::from_millis(duration_ms.min(LONGEST.as_nanos() / 1_000_000));
            let counted = fill(&link.channel, duration, Bytes::new(most_bytes))?;
            link.channel.say(&Message::Measure(counted))
        }
        MeasureMessage::Drain => {
            let drained = drain(&mut link.frames, LONGEST)?;
            link.channel.say(&Message::Measure(MeasureMessage::Drained {
                content_bytes: drained.content.get(),
                elapsed_us: drained.elapsed.as_micros(),
            }))
        }
        _ => Err(TransferError::PeerFailed("it gave an order out of order".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_go_to_no_other_host_than_the_one_that_asks_for_them() {
        let peer = "::ffff:192.0.2.7".parse().unwrap();
        let is_sent_to = |to: &str| is_from(to.parse().unwrap(), peer);
        assert!(is_sent_to("192.0.2.7:40000") && is_sent_to("[::ffff:192.0.2.7]:7"));
        assert!(!is_sent_to("192.0.2.8:40000") && !is_sent_to("[2001:db8::1]:40000"));
    }

    #[test]
    fn nobody_makes_a_far_end_send_for_longer_than_a_minute_or_flood_its_path() {
        // A minute of a packet a millisecond.
        assert!(!is_excessive(60_000, 1472, 1_000_000));
        assert!(is_excessive(60_001, 1472, 1_000_000));
        assert!(is_excessive(200_001, 72, 0));
        assert!(is_excessive(1, 65_507, 0));
        assert!(is_excessive(2, 72, u64::MAX));
    }
}
