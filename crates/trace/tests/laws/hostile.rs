use proptest::prelude::*;

use super::packets::{ACK, Order, SYN, enhanced, ethernet, ipv4, pcap, plain, section, tcp};

#[path = "../../../../fuzz/capture.rs"]
mod entry;

fn some_capture(ng: bool) -> Vec<u8> {
    let syn = ethernet(&[], 0x0800, &ipv4(6, 0, &[], &tcp(0, SYN, &[2, 4, 5, 0xb4], 0)));
    let again = ethernet(&[], 0x0800, &ipv4(6, 0, &[], &tcp(5000, ACK, &[], 100)));
    let frames = [&syn[..], &plain(1000), &again, &plain(300)];
    if ng {
        let blocks = (0..).zip(frames).flat_map(|(n, f)| enhanced(Order::Big, n, f));
        [section(Order::Big, &[]), blocks.collect()].concat()
    } else {
        pcap(Order::Little, 0xa1b2_c3d4, 1, 0, &frames)
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_cause_no_panic(data: Vec<u8>, size in 1..100_usize) {
        let _ = entry::capture(&data, size);
    }

    #[test]
    fn a_damaged_capture_causes_no_panic(
        ng: bool,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        size in 1..100_usize,
    ) {
        let mut data = some_capture(ng);
        for (index, byte) in damage {
            let at = index.index(data.len());
            data[at] = byte;
        }
        let _ = entry::capture(&data, size);
    }

    #[test]
    fn the_chunk_size_does_not_change_the_result(ng: bool, size in 1..2000_usize) {
        let data = some_capture(ng);
        let whole = entry::capture(&data, data.len());
        prop_assert_eq!(whole.0.len(), 4);
        prop_assert_eq!(entry::capture(&data, size), whole);
    }
}
