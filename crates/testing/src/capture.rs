//! Captures of transfers with a known limiting factor, as pcap files.

use sweetspot_trace::file::{file_header, record_header};
use sweetspot_units::{Duration, Time};

/// The receiver's window in [`window_limited`], bytes: 20 segments of 1460.
const WINDOW: u16 = 29_200;

/// A TCP packet over IPv4 and Ethernet; `up` means from the client.
fn packet(up: bool, [seq, ack]: [u32; 2], flags: u8, window: u16, payload: u16) -> Vec<u8> {
    let options: &[u8] = if flags & 2 == 0 { &[] } else { &[2, 4, 5, 180, 1, 3, 3, 0] };
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0]);
    frame.extend((40 + options.len() as u16 + payload).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    let ends = [[192, 0, 2, 1], [192, 0, 2, 2]];
    frame.extend(if up { ends.concat() } else { [ends[1], ends[0]].concat() });
    frame.extend(if up { [0x9c, 0x40, 0, 80] } else { [0, 80, 0x9c, 0x40] });
    frame.extend([seq.to_be_bytes(), ack.to_be_bytes()].concat());
    frame.extend([(5 + options.len() as u8 / 4) << 4, flags]);
    frame.extend([&window.to_be_bytes()[..], &[0, 0, 0, 0], options].concat());
    frame.extend(vec![0; payload.into()]);
    frame
}

/// A transfer of `segments`, limited by a window of 20 segments: one window every 84 ms, on a path of about 58 Mbit/s.
/// Each segment and its ACK take 1600 bytes of the file.
pub fn window_limited(segments: u32) -> Vec<u8> {
    let mut packets: Vec<(u64, Vec<u8>)> = vec![
        (0, packet(true, [0, 0], 2, 65_535, 0)),
        (80_000, packet(false, [0, 1], 0x12, WINDOW, 0)),
        (80_010, packet(true, [1, 1], 0x10, 65_535, 0)),
    ];
    for n in 0..segments {
        let (round, place) = (u64::from(n / 20), u64::from(n % 20));
        let sent = 80_020 + round * 84_000 + place;
        packets.push((sent, packet(true, [1 + n * 1460, 1], 0x10, 65_535, 1460)));
        let acked = 80_020 + round * 84_000 + 80_000 + place * 200;
        packets.push((acked, packet(false, [1, 1 + (n + 1) * 1460], 0x10, WINDOW, 0)));
    }
    packets.sort_by_key(|(at, _)| *at);
    let mut bytes = file_header(2000).to_vec();
    for (at, frame) in packets {
        let time = Time::ZERO + Duration::from_micros(at);
        bytes.extend(record_header(time, frame.len(), frame.len()));
        bytes.extend(frame);
    }
    bytes
}
