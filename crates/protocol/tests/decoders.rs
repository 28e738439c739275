//! The entry points of the fuzz targets, driven by proptest: no input panics, and their assertions
//! hold.

#[path = "../../../fuzz/entries.rs"]
mod entries;

use proptest::prelude::*;
use sweetspot_protocol::frame::PieceHeader;
use sweetspot_protocol::record::{Answer, Entry, EntryKind, Owner, Record, StreamArrival};
use sweetspot_protocol::{
    CongestionMessage, DirectoryStatus, MeasureMessage, Message, Offer, RelativePath,
};
use sweetspot_units::Time;

/// A stream that is valid at first, so that it reaches the later stages, and arbitrary afterwards.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let message = prop_oneof![
        Just(Message::Offer(Offer {
            name: "f".into(),
            size: None,
            one_file: true,
            many: false,
            checksum: false,
            dry_run: false,
            sizing: None,
            congestion: None,
            path: None,
            probes: true,
            streams: None,
            greedy: false,
            attributes: false,
            contents_of: Some(DirectoryStatus { mode: 0o755, modified: (1, 2), owner: None }),
        })),
        Just(Message::End),
        Just(Message::Busy),
        Just(Message::Measure(MeasureMessage::Drain)),
        Just(Message::Failed { reason: "because".into() }),
        any::<Option<u64>>().prop_map(|n| Message::Steer {
            pacing_bps: n,
            window: n,
            congestion: CongestionMessage::Bbr,
            phase: "ramping".into()
        }),
    ];
    let record = prop_oneof![
        (0u64..40).prop_map(|size| Record::Entries(vec![Entry {
            path: RelativePath::new("a/b").unwrap(),
            kind: EntryKind::File { size, sparse: false },
            mode: 0o644,
            modified: (0, 0),
            owner: Some(Box::new(Owner {
                user: 0,
                group: 7,
                user_name: "root".into(),
                group_name: "".into()
            })),
            attributes: vec![],
        }])),
        (0u32..3).prop_map(|entries| Record::Listed {
            entries,
            files: entries,
            bytes: 0,
            left_out: 1
        }),
        Just(Record::Answers(vec![Answer::All])),
        any::<[u64; 2]>().prop_map(|[sent_ns, received_ns]| {
            Record::Arrivals(vec![StreamArrival { index: 1, sent_ns, received_ns }])
        }),
    ];
    let frame = prop_oneof![
        message.prop_map(|message| message.to_frame()),
        record.prop_map(|record| record.to_frame()),
        proptest::collection::vec(any::<u8>(), 1..20).prop_map(|content| {
            let length = content.len() as u32;
            let header = PieceHeader { entry: 0, piece: 0, hash: [0; 32], length };
            [&header.to_bytes()[..], &content].concat()
        }),
        proptest::collection::vec(any::<u8>(), 0..20),
    ];
    (any::<u8>(), proptest::collection::vec(frame, 0..20))
        .prop_map(|(cut, frames)| [vec![cut], frames.concat()].concat())
}

proptest! {
    #[test]
    fn an_accepted_invitation_reencodes_to_the_same_bytes(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        entries::invitation(&bytes);
    }

    #[test]
    fn no_frame_stream_breaks_the_frame_decoder(stream in stream()) {
        entries::frames(&stream);
    }

    #[test]
    fn no_bytes_break_the_frame_decoder(bytes in proptest::collection::vec(any::<u8>(), 0..500)) {
        entries::frames(&bytes);
    }

    #[test]
    fn no_bytes_break_the_record_decoder(bytes in proptest::collection::vec(any::<u8>(), 0..500)) {
        entries::record(&bytes);
    }

    #[test]
    fn no_piece_order_breaks_file_progress(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        entries::file_progress(&bytes);
    }

    #[test]
    fn no_text_breaks_the_client_key_and_code_parsers(
        text in "((sweetspot-key1|secret|code):[a-z2-7-]{0,60} [a-z]{1,3} (dir=\"?[a-z /]{1,9}\"? ?)?(once|quota=[0-9]{1,3}B)?\n?){0,3}",
    ) {
        entries::clients(text.as_bytes());
    }

    #[test]
    fn no_text_breaks_the_ticket_parser(text in "(sweetspot1:)?[a-zA-Z2-7:]{0,200}") {
        entries::ticket(text.as_bytes());
    }

    #[test]
    fn no_datagram_breaks_the_probe_decoder(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        entries::probe(&bytes);
    }

    #[test]
    fn no_sealed_fields_break_the_probe_decoder(
        kind in 0u8..6,
        fields in proptest::collection::vec(any::<u8>(), 0..100),
    ) {
        entries::probe(&[vec![kind], fields].concat());
    }
}

#[test]
fn a_ticket_may_expire_in_the_far_future() {
    let ticket = {
        let host = sweetspot_protocol::TicketHost::Address([192, 0, 2, 1].into());
        let secret = sweetspot_protocol::Secret([0; 16]);
        let expires = Time::from_nanos(u64::MAX / 1_000_000_000 * 1_000_000_000);
        let proof = sweetspot_protocol::TicketProof::Secret { secret, expires };
        sweetspot_protocol::Ticket { host, port: 1, fingerprint: [0; 32], proof }
    };
    entries::ticket(ticket.to_string().as_bytes());
}

/// Found by fuzzing: the code for "no threshold" in place of a number was accepted, and then written as
/// another number.
#[test]
fn an_answer_with_an_invalid_float_code_is_rejected() {
    let mut fields = vec![3, 1];
    fields.extend([0xff; 8]);
    fields.extend([0x52; 7]);
    fields.extend([0xff; 9]);
    fields.extend([0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0xb8, 0]);
    entries::probe(&fields);
}
