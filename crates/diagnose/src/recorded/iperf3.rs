//! Results of `iperf3 --json` at the sender: rate, retransmissions, cwnd and RTT of each interval.

use std::net::{IpAddr, SocketAddr};

use serde_json::{Deserializer, Value, json};
use sweetspot_units::{Bytes, Duration, Time};

use super::{MAX_SEGMENT, Recorded, Recording, RecordingError, micros};
use crate::live::Sample;

/// Whether `text` is a result of iperf3. NDT7's files are JSON, too, but with other members.
pub fn is_result(text: &str) -> bool {
    let head = text.get(..4000).unwrap_or(text);
    head.contains("\"start\"") && (head.contains("iperf3") || head.contains("\"connected\""))
}

pub fn read(text: &str) -> Result<Recorded, RecordingError> {
    let document = document(text)?;
    if let Some(error) = document["error"].as_str() {
        return Err(RecordingError::Iperf3Failed(error.to_owned()));
    }
    let connected = document["start"]["connected"].as_array().cloned().unwrap_or_default();
    let mss = document["start"]["tcp_mss_default"].as_u64().unwrap_or(1448);
    let mss = Bytes::new(mss).min(MAX_SEGMENT);
    let mut recordings = Vec::new();
    for connection in &connected {
        let Some(ends) = ends(connection) else { continue };
        let mut last = Sample { mss, send_buffer: Bytes::MAX, ..Sample::default() };
        let mut samples = Vec::new();
        for stream in intervals(&document, &connection["socket"]) {
            let Some(sample) = sample(stream, &last) else { continue };
            if samples.is_empty() {
                samples.push(Sample {
                    at: Time::ZERO,
                    ..Sample { rtt: sample.rtt, rtt_min: sample.rtt_min, ..last }
                });
            }
            samples.push(sample);
            last = sample;
        }
        recordings.push(Recording::new(ends, samples));
    }
    if recordings.iter().all(|recording| recording.samples.is_empty()) {
        return Err(RecordingError::NoIntervals);
    }
    Ok(Recorded { recordings, ..Recorded::default() })
}

/// Parses the result. `--json-stream` (iperf3 3.17) writes one event per line: the start, then each interval.
fn document(text: &str) -> Result<Value, RecordingError> {
    let mut result = Value::Null;
    for document in Deserializer::from_str(text).into_iter::<Value>() {
        let mut document = document?;
        let data = document.get_mut("data").map(Value::take).unwrap_or_default();
        match document["event"].as_str() {
            None => return Ok(document),
            Some("start") => result = json!({ "start": data, "intervals": [] }),
            Some("interval") => {
                result["intervals"]
                    .as_array_mut()
                    .into_iter()
                    .for_each(|all| all.push(data.clone()));
            }
            Some("error") => result["error"] = data,
            Some(_) => {}
        }
    }
    Ok(result)
}

fn ends(connection: &Value) -> Option<[SocketAddr; 2]> {
    let end = |host: &str, port: &str| {
        let address = connection[host].as_str()?.split('%').next()?;
        let address: IpAddr = address.parse().ok()?;
        let port = u16::try_from(connection[port].as_u64()?).ok()?;
        Some(SocketAddr::new(address, port))
    };
    Some([end("local_host", "local_port")?, end("remote_host", "remote_port")?])
}

/// The intervals of the stream on `socket`.
fn intervals<'a>(document: &'a Value, socket: &'a Value) -> impl Iterator<Item = &'a Value> {
    let intervals = document["intervals"].as_array().into_iter().flatten();
    let streams =
        intervals.flat_map(|interval| interval["streams"].as_array().into_iter().flatten());
    streams.filter(move |stream| stream["socket"] == *socket)
}

/// A peer window this full limits the sender.
const FULL_WINDOW_SHARE: f64 = 0.8;
/// If the congestion window grows by this factor from one interval to the next, the connection is in slow start.
const SLOW_START_GROWTH: f64 = 1.25;

/// The counters at the end of an interval. An iperf3 sender always has more to send. Its flight is estimated as rate *
/// RTT.
fn sample(stream: &Value, last: &Sample) -> Option<Sample> {
    let number = |name: &str| stream[name].as_u64();
    let end = stream["end"].as_f64().filter(|end| (0.0..1e9).contains(end))?;
    let at = Time::ZERO + Duration::from_nanos((end * 1e9) as u64);
    let cwnd = number("snd_cwnd")?;
    let segments = u32::try_from(cwnd / last.mss.get().max(1)).unwrap_or(u32::MAX);
    let rtt = micros(number("rtt")?);
    let sent = Bytes::new(number("bytes")?);
    let time = at.since(last.at);
    let flight = if time > Duration::ZERO { sent / time * rtt } else { Bytes::ZERO };
    let peer_window = number("snd_wnd").map(Bytes::new);
    let held = peer_window.is_some_and(|window| flight >= window.scaled(FULL_WINDOW_SHARE));
    let grows = f64::from(segments) >= SLOW_START_GROWTH * f64::from(last.congestion_window);
    let known = Some(last.rtt_min).filter(|rtt| *rtt > Duration::ZERO);
    Some(Sample {
        at,
        acked: last.acked.saturating_add(sent),
        busy: last.busy + time,
        congestion_window: segments,
        window_limited: last.window_limited + if held { time } else { Duration::ZERO },
        slow_start_threshold: if grows { u32::MAX } else { 0 },
        segments_in_flight: u32::try_from(flight.get() / last.mss.get().max(1))
            .unwrap_or(u32::MAX)
            .min(segments),
        not_sent: last.mss * 64,
        rtt,
        rtt_min: known.map_or(rtt, |min| min.min(rtt)),
        peer_window,
        segments: last.segments.saturating_add(sent.get() / last.mss.get().max(1)),
        retransmitted: last.retransmitted.saturating_add(number("retransmits").unwrap_or(0)),
        ..*last
    })
}
