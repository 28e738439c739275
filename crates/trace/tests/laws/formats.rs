use sweetspot_trace::file::{CaptureError, Decoder, file_header, record_header};
use sweetspot_trace::packet::Dissector;
use sweetspot_units::Time;

use super::packets::{Order, block, enhanced, pcap, plain, section};

/// Decodes a whole capture into the time and length of each record.
fn read(mut file: &[u8]) -> Result<Vec<(Time, usize)>, CaptureError> {
    let (mut decoder, mut records) = (Decoder::default(), Vec::new());
    while let Some(record) = decoder.next(&mut file)? {
        records.push((record.time, record.bytes.len()));
    }
    decoder.end(file)?;
    Ok(records)
}

#[test]
fn pcap_is_read_in_both_byte_orders_and_both_resolutions() {
    let frame = plain(10);
    for order in [Order::Little, Order::Big] {
        for (magic, nanos) in [(0xa1b2_c3d4, 5_000), (0xa1b2_3c4d, 5)] {
            let file = pcap(order, magic, 1, 5, &[&frame, &frame]);
            let at = |s: u64| Time::from_nanos(s * 1_000_000_000 + nanos);
            assert_eq!(read(&file), Ok(vec![(at(1), frame.len()), (at(2), frame.len())]));
        }
    }
}

/// Version 2.2 has the length on the wire first, version 2.4 has it last, and version 2.3 exists with both orders.
#[test]
fn a_truncated_packet_is_read_in_every_pcap_version() {
    let (frame, kept) = (plain(10), 54);
    for (minor, swapped) in [(2, true), (3, true), (3, false), (4, false)] {
        for order in [Order::Little, Order::Big] {
            let mut file = pcap(order, 0xa1b2_c3d4, 1, 5, &[&frame[..kept], &frame[..kept]]);
            file[6..8].copy_from_slice(&order.u16(minor));
            let lengths = [kept as u32, frame.len() as u32];
            let lengths = if swapped { [lengths[1], lengths[0]] } else { lengths };
            for record in 0..2 {
                let at = 24 + record * (16 + kept) + 8;
                file[at..at + 4].copy_from_slice(&order.u32(lengths[0]));
                file[at + 4..at + 8].copy_from_slice(&order.u32(lengths[1]));
            }
            let (mut decoder, mut input, mut seen) = (Decoder::default(), file.as_slice(), 0);
            while let Some(record) = decoder.next(&mut input).unwrap() {
                assert_eq!((record.bytes.len(), record.length), (kept, frame.len()), "2.{minor}");
                seen += 1;
            }
            assert_eq!(seen, 2, "2.{minor}");
        }
    }
}

#[test]
fn pcapng_is_read_in_both_byte_orders_and_every_resolution() {
    let frame = plain(10);
    for order in [Order::Little, Order::Big] {
        // if_tsresol (9), one byte: 10^-6 without the option, 10^-9, and 2^-10.
        for (resolution, ticks, nanos) in
            [(None, 7, 7_000), (Some(9), 7, 7), (Some(0x80 | 10), 1024, 1_000_000_000)]
        {
            let mut options = Vec::new();
            if let Some(resolution) = resolution {
                options.extend(order.u16(9));
                options.extend(order.u16(1));
                options.extend([resolution, 0, 0, 0]);
            }
            let file = [section(order, &options), enhanced(order, ticks, &frame)].concat();
            assert_eq!(read(&file), Ok(vec![(Time::from_nanos(nanos), frame.len())]));
        }
    }
}

#[test]
fn a_pcapng_interface_offset_may_be_negative() {
    let frame = plain(10);
    for order in [Order::Little, Order::Big] {
        // if_tsoffset (14), eight bytes, signed: an hour less, so 3,600.000007 s become 7 us.
        let offset = (-3_600_i64).cast_unsigned();
        let (high, low) = (order.u32((offset >> 32) as u32), order.u32(offset as u32));
        let words = if order == Order::Big { [high, low] } else { [low, high] };
        let options = [&order.u16(14)[..], &order.u16(8), &words[0], &words[1]].concat();
        let file = [section(order, &options), enhanced(order, 3_600_000_007, &frame)].concat();
        assert_eq!(read(&file), Ok(vec![(Time::from_nanos(7_000), frame.len())]));
    }
}

#[test]
fn unknown_blocks_are_skipped_and_simple_packets_reuse_the_last_time() {
    let (order, frame) = (Order::Little, plain(10));
    let statistics = block(order, 5, &[0; 20]);
    let simple = block(order, 3, &[&order.u32(frame.len() as u32)[..], &frame].concat());
    let file = [section(order, &[]), enhanced(order, 9, &frame), statistics, simple].concat();
    let at = Time::from_nanos(9_000);
    assert_eq!(read(&file), Ok(vec![(at, frame.len()), (at, frame.len())]));
}

#[test]
fn each_interface_has_its_own_link_layer() {
    let (order, frame) = (Order::Little, plain(10));
    // The second interface has raw IP (link type 101).
    let raw = block(order, 1, &[&order.u16(101)[..], &[0; 6]].concat());
    let packet = &frame[14..];
    let lengths = order.u32(packet.len() as u32);
    let fields = [&order.u32(1)[..], &order.u32(0), &order.u32(9), &lengths, &lengths].concat();
    let other = block(order, 6, &[&fields[..], packet, &[0; 2]].concat());
    let file = [section(order, &[]), raw, enhanced(order, 9, &frame), other].concat();
    let (mut decoder, mut dissector) = (Decoder::default(), Dissector::default());
    let (mut input, mut seen) = (file.as_slice(), Vec::new());
    while let Some(record) = decoder.next(&mut input).unwrap() {
        seen.push(dissector.dissect(&record).unwrap());
    }
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0], seen[1]);
}

#[test]
fn sections_may_differ_in_byte_order() {
    let frame = plain(10);
    let part = |order| [section(order, &[]), enhanced(order, 1, &frame)].concat();
    let file = [part(Order::Little), part(Order::Big)].concat();
    assert_eq!(read(&file).map(|records| records.len()), Ok(2));
}

#[test]
fn a_truncated_capture_reports_where_it_was_cut_off() {
    let frame = plain(10);
    let whole = pcap(Order::Little, 0xa1b2_c3d4, 1, 0, &[&frame, &frame]);
    let (header, record) = (24, 16 + frame.len());
    for cut in 0..whole.len() {
        let expected = match cut {
            0 => Err(CaptureError::Empty),
            1..4 => Err(CaptureError::NotACapture { found: "too few bytes" }),
            // Between two records the capture is complete.
            _ if cut == header || cut == header + record => Ok(()),
            _ if cut < header => Err(CaptureError::HeaderCutOff),
            _ if cut > header && cut < header + record => Err(CaptureError::NoPacket),
            _ => {
                Err(CaptureError::CutOff { at: (header + (cut - header) / record * record) as u64 })
            }
        };
        assert_eq!(read(&whole[..cut]).map(|_| ()), expected, "cut at {cut}");
    }
}

#[test]
fn snoop_records_are_read_with_their_padding() {
    let frame = plain(10);
    let fields = |fields: &[u32]| fields.iter().flat_map(|n| n.to_be_bytes()).collect::<Vec<u8>>();
    let mut file = [&b"snoop\0\0\0"[..], &fields(&[2, 4])].concat();
    // Each record has its original length, captured length, record length, number of drops, seconds and
    // microseconds.
    let (length, kept) = (frame.len() as u32, frame.len() as u32 - 4);
    for second in [1, 2] {
        file.extend(fields(&[length, kept, 24 + kept + 3, 0, second, 5]));
        file.extend(&frame[..kept as usize]);
        file.extend([0; 3]);
    }
    let at = |s: u64| Time::from_nanos(s * 1_000_000_000 + 5_000);
    let kept = kept as usize;
    assert_eq!(read(&file), Ok(vec![(at(1), kept), (at(2), kept)]));
    assert!(matches!(read(&file[..file.len() - 1]), Err(CaptureError::CutOff { .. })));
    // A record shorter than its captured bytes, an unknown version, and a text that begins with the same word.
    file[16 + 8..16 + 12].copy_from_slice(&fields(&[24]));
    assert!(matches!(read(&file), Err(CaptureError::Corrupt { at: 16, .. })));
    file[8..12].copy_from_slice(&fields(&[3]));
    assert!(matches!(read(&file), Err(CaptureError::Version { format: "snoop", .. })));
    assert!(matches!(read(b"snooping around..."), Err(CaptureError::NotACapture { .. })));
}

#[test]
fn a_file_that_is_not_a_capture_gets_a_specific_error() {
    let words = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    assert!(words(&[0x1f, 0x8b, 8, 0]).contains("gunzip"));
    assert!(words(b"GET / HTTP/1.1").contains("neither pcap nor pcapng"));
    let strange = pcap(Order::Little, 0xa1b2_c3d4, 1, 0, &[]);
    let strange = [&strange[..4], &[3, 0], &strange[6..]].concat();
    assert!(words(&strange).contains("pcap version 3.4"));
}

#[test]
fn impossible_lengths_are_corrupt_and_allocate_nothing() {
    let mut file = pcap(Order::Little, 0xa1b2_c3d4, 1, 0, &[&plain(10)]);
    file[32..36].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(matches!(read(&file), Err(CaptureError::Corrupt { at: 24, .. })));
    let mut file = [section(Order::Little, &[]), enhanced(Order::Little, 1, &plain(1))].concat();
    let last = file.len() - 1;
    file[last] ^= 1;
    assert!(matches!(read(&file), Err(CaptureError::Corrupt { .. })));
}

#[test]
fn a_written_capture_reads_back_unchanged() {
    let frame = plain(30);
    let at = Time::from_nanos(1_700_000_000_123_456_789);
    let mut file = file_header(96).to_vec();
    file.extend(record_header(at, frame.len(), frame.len()));
    file.extend(&frame);
    assert_eq!(read(&file), Ok(vec![(at, frame.len())]));
}
