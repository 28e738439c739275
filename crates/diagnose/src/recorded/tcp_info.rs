//! Archives of M-Lab's sidecar tcp-info (github.com/m-lab/tcp-info, netlink/archival-record.go): a line per reading, with the
//! kernel's structures in base64. include/uapi/linux/inet_diag.h and tcp.h define them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use data_encoding::BASE64;
use serde_json::{Map, Value, json};

/// Attribute numbers (`INET_DIAG_*`).
const INFO: usize = 2;
const SOCKET_MEMORY: usize = 7;
const BBR_INFO: usize = 16;

const AF_INET: u8 = 2;

/// Fields of `struct tcp_info`: NDT7's name, offset and size in bytes. Newer kernels append fields, so an older kernel's
/// structure lacks the last ones.
const FIELDS: [(&str, usize, usize); 32] = [
    ("CAState", 1, 1),
    ("WScale", 6, 1),
    ("SndMSS", 16, 4),
    ("Unacked", 24, 4),
    ("Sacked", 28, 4),
    ("Lost", 32, 4),
    ("Retrans", 36, 4),
    ("RTT", 68, 4),
    ("SndSsThresh", 76, 4),
    ("SndCwnd", 80, 4),
    ("RcvRTT", 92, 4),
    ("Options", 5, 1),
    ("LastDataRecv", 52, 4),
    ("TotalRetrans", 100, 4),
    ("MaxPacingRate", 112, 8),
    ("BytesAcked", 120, 8),
    ("BytesReceived", 128, 8),
    ("NotsentBytes", 144, 4),
    ("MinRTT", 148, 4),
    ("DataSegsOut", 156, 4),
    ("DeliveryRate", 160, 8),
    ("BusyTime", 168, 8),
    ("RWndLimited", 176, 8),
    ("SndBufLimited", 184, 8),
    ("Delivered", 192, 4),
    ("BytesSent", 200, 8),
    ("BytesRetrans", 208, 8),
    ("RcvOooPack", 224, 4),
    ("SndWnd", 228, 4),
    ("RcvWnd", 232, 4),
    ("TotalRTO", 240, 2),
    // Bit 0 of this byte is the flag.
    ("AppLimited", 7, 1),
];

/// A reading from an archive as a measurement of NDT7; `None` if it is not a reading or has no `tcp_info`.
pub fn measurement(record: &Value) -> Option<Value> {
    let message = decoded(record.get("RawIDM")?)?;
    let attributes = record.get("Attributes")?.as_array()?;
    let attribute = |number: usize| decoded(attributes.get(number)?);
    let structure = attribute(INFO)?;
    let mut info = Map::new();
    for (name, offset, size) in FIELDS {
        if let Some(number) = number(&structure, offset, size) {
            let number = if name == "AppLimited" { number & 1 } else { number };
            info.insert(name.to_owned(), json!(number));
        }
    }
    let [server, client] = ends(&message)?;
    let mut measurement = json!({
        "Timestamp": record.get("Timestamp")?,
        "TCPInfo": info,
        "ConnectionInfo": { "Server": server.to_string(), "Client": client.to_string() },
    });
    if let Some(memory) = attribute(SOCKET_MEMORY) {
        measurement["Memory"] = json!({
            "Queued": number(&memory, 20, 4),
            "InDevice": number(&memory, 8, 4),
            "SendBuffer": number(&memory, 12, 4),
            "Unread": number(&message, 56, 4),
        });
    }
    if attribute(BBR_INFO).is_some() {
        measurement["BBRInfo"] = json!({});
    }
    Some(measurement)
}

fn decoded(value: &Value) -> Option<Vec<u8>> {
    BASE64.decode(value.as_str()?.as_bytes()).ok()
}

/// A number of `size` bytes in the byte order of M-Lab's machines.
fn number(structure: &[u8], offset: usize, size: usize) -> Option<u64> {
    let bytes = structure.get(offset..offset + size)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// The ends of `inet_diag_msg`, the sampled one first.
fn ends(message: &[u8]) -> Option<[SocketAddr; 2]> {
    let port = |at: usize| Some(u16::from_be_bytes(message.get(at..at + 2)?.try_into().ok()?));
    let address = |at: usize| {
        let bytes: [u8; 16] = message.get(at..at + 16)?.try_into().ok()?;
        let [a, b, c, d, ..] = bytes;
        Some(match message.first()? {
            &AF_INET => IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
            _ => Ipv6Addr::from(bytes).to_canonical(),
        })
    };
    Some([SocketAddr::new(address(8)?, port(4)?), SocketAddr::new(address(24)?, port(6)?)])
}
