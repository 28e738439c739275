//! The listener's half of a measurement: it carries out the requests of the measuring end.

use std::net::SocketAddr;
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

use super::account::{Cost, MeasureAccount};
use super::datagrams::{Datagrams, Stream, receiving};
use super::fill::{drain, fill};
use super::{WORD_TIMEOUT, next_word};
use crate::control::udp_demux::{Registered, UdpDemux};
use crate::limits::{
    LONGEST_LOAD, LONGEST_MEASUREMENT, MAX_STREAM_PACKETS, MAX_STREAM_PAYLOAD_BYTES, ORDER_TIMEOUT,
};
use crate::wire::channel::Channel;
use crate::wire::frame_reader::FrameReader;
use crate::wire::link::Link;
use crate::{Result, TransferError};

const PREPARING: &str = "preparing datagrams";
/// Time limit for the first datagram.
const PUNCH_TIMEOUT: Duration = Duration::from_secs(3);

/// Serves one connection of a measurement: the one that carries the requests, or a load connection (`to_fill`). This end's
/// traffic is charged to `account`.
pub(crate) fn serve(
    demux: &UdpDemux,
    link: Link,
    to_fill: bool,
    account: &MeasureAccount<'_>,
) -> Result<()> {
    let channel = Arc::clone(&link.channel);
    let result = if to_fill {
        serve_load(link, account)
    } else {
        open_datagrams(demux, &link).and_then(|opened| match opened {
            Some((echoes, streams)) => serve_orders(link, &echoes, &streams, account),
            None => {
                channel.send_message(&Message::Measure(MeasureMessage::Ready { datagrams: false }))
            }
        })
    };
    match result {
        // The measuring end has finished.
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

/// Sockets connected to the source addresses of the measuring end's echoes and streams; `None` if no datagram arrives.
fn open_datagrams(demux: &UdpDemux, link: &Link) -> Result<Option<(Datagrams, Datagrams)>> {
    let authenticators =
        [PacketAuthenticator::new(&link.session), PacketAuthenticator::of_streams(&link.session)];
    let deadline = clock::now() + PUNCH_TIMEOUT;
    let peer = link.channel.socket().peer_addr().map_err(TransferError::system(PREPARING))?;
    // Both share one deadline.
    let open = || -> std::io::Result<Option<(Datagrams, Datagrams)>> {
        let [first, second] = authenticators;
        let register = |authenticator| demux.register(authenticator, peer.ip());
        let registered = [register(first.clone())?, register(second.clone())?];
        let [Some(echoes), Some(streams)] =
            registered.each_ref().map(|registered| peer_address(registered, deadline))
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

/// The source address of a registration's datagrams; `None` if none arrives before `deadline`.
fn peer_address(registered: &Registered<'_>, deadline: Time) -> Option<SocketAddr> {
    let registration = &registered.registration;
    loop {
        if let Some(from) = registration.peer_address() {
            return Some(from);
        }
        if clock::now() >= deadline {
            return None;
        }
        let _ = wait_readable(&[registration.event_fd.as_fd()], deadline);
    }
}

fn serve_orders(
    mut link: Link,
    echoes: &Datagrams,
    streams: &Datagrams,
    account: &MeasureAccount<'_>,
) -> Result<()> {
    let channel = Arc::clone(&link.channel);
    channel.send_message(&Message::Measure(MeasureMessage::Ready { datagrams: true }))?;
    receiving([echoes, streams], || orders(&mut link.frames, &channel, streams, account))
}

fn orders(
    frames: &mut FrameReader,
    channel: &Channel,
    datagrams: &Datagrams,
    account: &MeasureAccount<'_>,
) -> Result<()> {
    let end = clock::now() + LONGEST_MEASUREMENT;
    loop {
        match next_word(frames, end.min(clock::now() + ORDER_TIMEOUT))? {
            MeasureMessage::Send { stream, packets, payload_bytes, gap_ns, random, pair_ns } => {
                if is_excessive(packets, payload_bytes, gap_ns.max(pair_ns)) {
                    return Err(TransferError::PeerFailed(
                        "it requested a stream that is too long".into(),
                    ));
                }
                let spacing = match (random, pair_ns) {
                    (false, _) => Spacing::Even,
                    (true, 0) => Spacing::Poisson,
                    (true, apart) => Spacing::PoissonPairs(Duration::from_nanos(apart)),
                };
                let gap = Duration::from_nanos(gap_ns);
                let ordered = Stream { number: stream, packets, gap, spacing };
                // Includes IPv6 and UDP headers. Otherwise small packets would be almost free.
                let packet = u64::from(payload_bytes) + 48;
                account.charge_in_full(Cost {
                    bytes: Bytes::new(u64::from(packets) * packet),
                    time: gap * u64::from(packets),
                })?;
                datagrams.send_stream(ordered, Bytes::new(payload_bytes.into()));
                channel
                    .send_message(&Message::Measure(MeasureMessage::Sent { stream, packets }))?;
            }
            MeasureMessage::Report { stream, packets } => {
                let arrivals = datagrams.take_arrivals(stream, packets, WORD_TIMEOUT / 2);
                for batch in arrivals.chunks(MAX_ARRIVALS) {
                    channel.send_record(&Record::Arrivals(batch.iter().map(arrival).collect()))?;
                }
                channel.send_message(&Message::Measure(MeasureMessage::Reported { stream }))?;
            }
            // Loads have their own connections, so they are not allowed here.
            _ => return Err(TransferError::PeerFailed("it sent a command out of order".into())),
        }
    }
}

/// Whether the stream is larger or longer than any that this program's measurements ask for.
fn is_excessive(packets: u32, payload_bytes: u32, gap_ns: u64) -> bool {
    packets > MAX_STREAM_PACKETS
        || payload_bytes > MAX_STREAM_PAYLOAD_BYTES
        || gap_ns.saturating_mul(packets.into()) > LONGEST_LOAD.as_nanos()
}

fn arrival(arrival: &Arrival) -> StreamArrival {
    StreamArrival {
        index: arrival.index,
        sent_ns: arrival.sent.as_nanos(),
        received_ns: arrival.received.as_nanos(),
    }
}

fn serve_load(mut link: Link, account: &MeasureAccount<'_>) -> Result<()> {
    match next_word(&mut link.frames, clock::now() + WORD_TIMEOUT)? {
        MeasureMessage::Fill { duration_ms, max_bytes } => {
            let duration =
                Duration::from_millis(duration_ms.min(LONGEST_LOAD.as_nanos() / 1_000_000));
            let requested = Cost { bytes: Bytes::new(max_bytes), time: duration };
            let granted = account.charge(requested)?;
            let filled = fill(&link.channel, granted.time, granted.bytes)?;
            if let MeasureMessage::Filled { content_bytes, .. } = &filled {
                account.give_back(granted.bytes.saturating_sub(Bytes::new(*content_bytes)));
            }
            link.channel.send_message(&Message::Measure(filled))
        }
        MeasureMessage::Drain => {
            let drained = drain(&mut link.frames, LONGEST_LOAD)?;
            link.channel.send_message(&Message::Measure(MeasureMessage::Drained {
                content_bytes: drained.content.get(),
                elapsed_us: drained.elapsed.as_micros(),
            }))
        }
        _ => Err(TransferError::PeerFailed("it sent a command out of order".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_beyond_a_minute_or_the_packet_limits_are_excessive() {
        // A minute at one packet per millisecond.
        assert!(!is_excessive(60_000, 1472, 1_000_000));
        assert!(is_excessive(60_001, 1472, 1_000_000));
        assert!(is_excessive(200_001, 72, 0));
        assert!(is_excessive(1, 65_507, 0));
        assert!(is_excessive(2, 72, u64::MAX));
    }
}
