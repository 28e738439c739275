//! A connection that TCP keeps full for a given time.

use std::thread;

use sweetspot_linux::{clock, tcp};
use sweetspot_protocol::frame::{FramePart, PieceHeader};
use sweetspot_protocol::{MAX_ROUND_TRIPS, MeasureMessage, Message};
use sweetspot_units::{Bytes, Duration, Time};

use super::{WORD_TIMEOUT, unexpected};
use crate::wire::channel::Channel;
use crate::wire::frame_reader::FrameReader;
use crate::{Result, TransferError};

/// Content is written in pieces of this length, short enough to stop soon on a slow path.
const PIECE_BYTES: usize = 16 << 10;
/// The interval between samples of the connection's RTT.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(50);

/// Writes content for `duration`, but at most `max` bytes. Returns this end's final message.
pub(super) fn fill(channel: &Channel, duration: Duration, max: Bytes) -> Result<MeasureMessage> {
    let deadline = clock::now() + duration;
    let samples = thread::scope(|scope| -> Result<_> {
        let sampling = scope.spawn(|| sample(channel, deadline));
        let written = write(channel, deadline, max);
        let samples = sampling.join().unwrap_or_default();
        Ok((written?, samples))
    });
    let (content, round_trips_us) = samples?;
    let info = tcp::Info::read(channel.socket()).map_err(TransferError::system("TCP_INFO"))?;
    let congestion = tcp::options::congestion(channel.socket()).unwrap_or_default();
    Ok(MeasureMessage::Filled {
        content_bytes: content.get(),
        round_trips_us,
        retransmitted: info.total_retrans.into(),
        congestion: congestion.into(),
    })
}

fn write(channel: &Channel, deadline: Time, max: Bytes) -> Result<Bytes> {
    let content = [0; PIECE_BYTES];
    let mut written = Bytes::ZERO;
    while clock::now() < deadline && written < max {
        let header = PieceHeader { entry: 0, piece: 0, hash: [0; 32], length: PIECE_BYTES as u32 };
        channel.write(&[&header.to_bytes(), &content])?;
        written += Bytes::new(PIECE_BYTES as u64);
    }
    Ok(written)
}

fn sample(channel: &Channel, deadline: Time) -> Vec<u32> {
    let mut samples = Vec::new();
    while clock::now() < deadline && samples.len() < MAX_ROUND_TRIPS {
        clock::sleep_until(clock::now() + SAMPLE_INTERVAL);
        let Ok(info) = tcp::Info::read(channel.socket()) else { break };
        samples.push(u32::try_from(info.rtt.as_micros()).unwrap_or(u32::MAX));
    }
    samples
}

/// Bytes read until the other end reported that it was done.
pub(super) struct Drained {
    pub content: Bytes,
    /// Time from the first content to the last.
    pub elapsed: Duration,
    /// The other end's final message.
    pub last: MeasureMessage,
}

/// Reads content until the other end's final message.
pub(super) fn drain(frames: &mut FrameReader, longest: Duration) -> Result<Drained> {
    let (mut content, mut first, mut until) = (Bytes::ZERO, None, Time::ZERO);
    let deadline = clock::now() + longest + WORD_TIMEOUT;
    let last = frames.wait_for(deadline, |part| match part {
        FramePart::Message(body) => {
            match Message::read(&body).map_err(sweetspot_protocol::ProtocolError::from)? {
                Message::Measure(word) => Ok(Some(word)),
                other => Err(unexpected(other)),
            }
        }
        FramePart::Content(bytes) => {
            content += Bytes::new(bytes.len() as u64);
            until = clock::now();
            first.get_or_insert(until);
            Ok(None)
        }
        _ => Ok(None),
    })?;
    let elapsed = until.since(first.unwrap_or(until));
    Ok(Drained { content, elapsed, last })
}
