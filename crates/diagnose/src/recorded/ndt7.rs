//! NDT7's result files (github.com/m-lab/ndt-server, data/ and spec/): JSON with arrays of measurements, each with the kernel's
//! `TCPInfo`, or one measurement per line.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde_json::{Deserializer, Value, json};
use sweetspot_units::{Bytes, Duration, Rate, Time};

use super::ss::moment;
use super::{Recording, RecordingError, micros, tcp_info};
use crate::live::Sample;

/// Maximum depth of nested arrays. More is an attack.
const MAX_DEPTH: usize = 16;
/// TCPI_OPT_TIMESTAMPS.
const TIMESTAMPS: u64 = 1;

pub fn read(text: &str) -> Result<Vec<Recording>, RecordingError> {
    let mut recordings = Vec::new();
    let mut index = HashMap::new();
    for document in Deserializer::from_str(text).into_iter::<Value>() {
        let document = measured(document?);
        if let Some(verb) = own_verb(&document) {
            return Err(RecordingError::OwnResult(verb));
        }
        if document.get("TCPInfo").is_none() {
            collect(&document, UNKNOWN, 0, &mut recordings);
            continue;
        }
        // One measurement per line: collect the measurements of each connection.
        let Some(sample) = measurement(&document) else { continue };
        let ends = connection(&document).unwrap_or(UNKNOWN);
        let known = *index.entry(ends).or_insert_with(|| {
            recordings.push(Recording::new(ends, Vec::new()));
            recordings.len() - 1
        });
        recordings[known].samples.push(sample);
    }
    if recordings.is_empty() {
        return Err(RecordingError::NoTcpInfo);
    }
    Ok(recordings)
}

/// The verb of this program that wrote `document`, if one did.
fn own_verb(document: &Value) -> Option<&'static str> {
    let has = |keys: &[&str]| keys.iter().all(|key| document.get(key).is_some());
    let verbs: [(_, &[_]); 3] = [
        ("run", &["engine", "transfers", "bottleneck"]),
        ("best", &["engine", "mft_bps"]),
        ("sweep", &["sweetspot_sweep"]),
    ];
    verbs.iter().find(|(_, keys)| has(keys)).map(|(verb, _)| *verb)
}

/// The measurement in a line from a client (ndt7-client-go writes it as `Value`, ndt7-js as `Data`) or from an archive.
fn measured(mut document: Value) -> Value {
    if document.get("RawIDM").is_some() {
        return tcp_info::measurement(&document).unwrap_or_default();
    }
    for name in ["Value", "Data"] {
        if document.get(name).is_some_and(|inner| inner.get("TCPInfo").is_some()) {
            return document[name].take();
        }
    }
    document
}

const UNKNOWN_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
const UNKNOWN: [SocketAddr; 2] = [UNKNOWN_ADDRESS; 2];

/// Finds arrays of measurements in `value`, a document of a connection between `ends`.
fn collect(value: &Value, ends: [SocketAddr; 2], depth: usize, into: &mut Vec<Recording>) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Array(items) => {
            let samples: Vec<Sample> = items.iter().filter_map(measurement).collect();
            if samples.is_empty() {
                items.iter().for_each(|item| collect(item, ends, depth + 1, into));
            } else {
                let named = items.iter().find_map(connection);
                let ends = named.unwrap_or(ends);
                into.push(Recording::new(ends, samples));
            }
        }
        Value::Object(fields) => {
            let ends = named(value).unwrap_or(ends);
            fields.values().for_each(|field| collect(field, ends, depth + 1, into));
        }
        _ => {}
    }
}

/// The ends in a result file: the server, which was sampled, then the client.
fn named(value: &Value) -> Option<[SocketAddr; 2]> {
    let end = |ip: &str, port: &str| {
        let ip: IpAddr = value.get(ip)?.as_str()?.parse().ok()?;
        Some(SocketAddr::new(ip, u16::try_from(value.get(port)?.as_u64()?).ok()?))
    };
    Some([end("ServerIP", "ServerPort")?, end("ClientIP", "ClientPort")?])
}

/// The ends that a measurement names.
fn connection(value: &Value) -> Option<[SocketAddr; 2]> {
    let info = value.get("ConnectionInfo")?;
    let end = |name: &str| info.get(name)?.as_str()?.parse().ok();
    Some([end("Server")?, end("Client")?])
}

fn measurement(value: &Value) -> Option<Sample> {
    let info = value.get("TCPInfo")?;
    let number = |name: &str| info.get(name).and_then(Value::as_u64);
    let count = |name: &str| number(name).unwrap_or(0);
    let small = |name: &str| u32::try_from(count(name)).unwrap_or(u32::MAX);
    let micros = |name: &str| micros(count(name));
    let rate =
        |name: &str| number(name).map(|bytes| Rate::from_bits_per_second(bytes.saturating_mul(8)));
    // Linux sets all bits if there is no limit.
    let unlimited = |bytes: u64| bytes >= u64::from(u32::MAX);
    // Only recordings of this program have the socket's memory.
    let beside = value.get("Memory");
    let memory = |name: &str| beside?.get(name)?.as_u64().map(Bytes::new);
    // NDT7 writes 0 for kernels that do not report it.
    let window =
        |name: &str| number(name).filter(|bytes| *bytes > 0 || beside.is_some()).map(Bytes::new);
    let scale = count("WScale");
    Some(Sample {
        at: match number("ElapsedTime") {
            Some(elapsed) => Time::ZERO + super::micros(elapsed),
            None => moment(value.get("Timestamp")?.as_str()?)?,
        },
        // Linux counts the SYN as an acknowledged byte.
        acked: Bytes::new(count("BytesAcked").saturating_sub(1)),
        received: Bytes::new(count("BytesReceived")),
        delivered: count("Delivered"),
        busy: micros("BusyTime"),
        window_limited: micros("RWndLimited"),
        buffer_limited: micros("SndBufLimited"),
        congestion_window: small("SndCwnd"),
        slow_start_threshold: small("SndSsThresh"),
        segments_in_flight: small("Unacked")
            .saturating_add(small("Retrans"))
            .saturating_sub(small("Sacked").saturating_add(small("Lost"))),
        outstanding: memory("Outstanding").or_else(|| {
            let acked = count("BytesAcked").saturating_sub(1);
            let bytes = [number("BytesSent")?, number("BytesRetrans")?, acked].map(Bytes::new);
            let mss = Bytes::new(count("SndMSS")).min(super::MAX_SEGMENT);
            Some(Sample::outstanding(bytes, small("Unacked"), mss))
        }),
        not_sent: Bytes::new(count("NotsentBytes")),
        recovering: count("CAState") >= 3,
        model_based: value.get("BBRInfo").is_some_and(Value::is_object),
        mss: Bytes::new(count("SndMSS")),
        rtt: micros("RTT"),
        rtt_min: micros("MinRTT"),
        pacing_limit: number("MaxPacingRate").filter(|b| !unlimited(*b)).and(rate("MaxPacingRate")),
        starved: count("AppLimited") != 0,
        delivery_rate: rate("DeliveryRate"),
        queued: memory("Queued").unwrap_or(Bytes::ZERO),
        in_device: memory("InDevice").unwrap_or(Bytes::ZERO),
        // A buffer of unknown size is never full.
        send_buffer: memory("SendBuffer").unwrap_or(Bytes::MAX),
        peer_window: window("SndWnd"),
        peer_scale: (scale & 0xf) as u8,
        scale: (scale >> 4 & 0xf) as u8,
        segments: count("DataSegsOut"),
        retransmitted: count("TotalRetrans"),
        timeouts: count("TotalRTO"),
        backoff: count("Backoff"),
        receiver_rtt: micros("RcvRTT"),
        timestamps: count("Options") & TIMESTAMPS != 0,
        // The kernel reports milliseconds here.
        last_arrival: number("LastDataRecv").map(|ms| super::micros(ms.saturating_mul(1000))),
        // Only recordings of this program have it.
        tick: micros("Tick"),
        window: window("RcvWnd"),
        unread: memory("Unread").unwrap_or(Bytes::ZERO),
        out_of_order: count("RcvOooPack"),
    })
}

/// A sample of the first of `ends` as one line of NDT7's JSON. The socket's memory is added, which NDT7 does not record.
pub fn written(ends: [SocketAddr; 2], sample: &Sample) -> String {
    let s = sample;
    let micros = Duration::as_micros;
    let mut info = json!({
        "ElapsedTime": s.at.as_nanos() / 1000,
        "BytesAcked": s.acked.get().saturating_add(1),
        "BytesReceived": s.received.get(),
        "Delivered": s.delivered,
        "BusyTime": micros(s.busy),
        "RWndLimited": micros(s.window_limited),
        "SndBufLimited": micros(s.buffer_limited),
        "SndCwnd": s.congestion_window,
        "SndSsThresh": s.slow_start_threshold,
        "Unacked": s.segments_in_flight,
        "NotsentBytes": s.not_sent.get(),
        "CAState": if s.recovering { 3 } else { 0 },
        "SndMSS": s.mss.get(),
        "RTT": micros(s.rtt),
        "MinRTT": micros(s.rtt_min),
        "MaxPacingRate": s.pacing_limit.map_or(u64::MAX, Rate::bytes_per_second),
        "AppLimited": u8::from(s.starved),
        "WScale": u64::from(s.scale & 0xf) << 4 | u64::from(s.peer_scale & 0xf),
        "DataSegsOut": s.segments,
        "TotalRetrans": s.retransmitted,
        "TotalRTO": s.timeouts,
        "Backoff": s.backoff,
        "RcvRTT": micros(s.receiver_rtt),
        "Options": if s.timestamps { TIMESTAMPS } else { 0 },
        "RcvOooPack": s.out_of_order,
    });
    for (name, window) in [("SndWnd", s.peer_window), ("RcvWnd", s.window)] {
        if let Some(window) = window {
            info[name] = window.get().into();
        }
    }
    if let Some(rate) = s.delivery_rate {
        info["DeliveryRate"] = rate.bytes_per_second().into();
    }
    if let Some(ago) = s.last_arrival {
        info["LastDataRecv"] = (ago.as_micros() / 1000).into();
    }
    if s.tick > Duration::ZERO {
        info["Tick"] = micros(s.tick).into();
    }
    let mut measurement = json!({
        "ConnectionInfo": { "Server": ends[0].to_string(), "Client": ends[1].to_string() },
        "Memory": { "Queued": s.queued.get(), "InDevice": s.in_device.get(), "Unread": s.unread.get() },
        "TCPInfo": info,
    });
    if s.send_buffer != Bytes::MAX {
        measurement["Memory"]["SendBuffer"] = s.send_buffer.get().into();
    }
    if let Some(outstanding) = s.outstanding {
        measurement["Memory"]["Outstanding"] = outstanding.get().into();
    }
    if s.model_based {
        measurement["BBRInfo"] = json!({});
    }
    measurement.to_string()
}
