//! A hostile peer's inputs, as functions of bytes. Run by the fuzz targets (`cargo +nightly fuzz run frames`) and by the
//! property tests of `sweetspot-protocol`.

#![allow(dead_code, reason = "each target uses one")]

use sweetspot_protocol::clients::Clients;
use sweetspot_protocol::frame::{FRAME_HEADER_BYTES, FrameDecoder, FramePart};
use sweetspot_protocol::hash_tree::piece_length;
use sweetspot_protocol::probe::PacketAuthenticator;
use sweetspot_protocol::record::{FileEnd, Record};
use sweetspot_protocol::{
    CodeAddress, FileProgress, Invitation, PublicKey, ReceiverOrder, Secret, SenderItem,
    SenderOrder, Session, Ticket,
};
use sweetspot_units::Bytes;

/// Content that the receiver accepts before it replies, bytes.
const EARLY: u32 = 100;

/// A stream as the receiver and the sender read it, in reads of a size given by the first byte. Content is only delivered
/// within a piece, up to the length in its header, or early within its bound, and no file content before an offer is
/// accepted.
pub fn frames(data: &[u8]) {
    let Some((size, stream)) = data.split_first() else { return };
    let (mut decoder, mut receiver, mut sender) =
        (FrameDecoder::default(), ReceiverOrder::taking_early(EARLY), SenderOrder::default());
    let (mut accepted, mut left, mut early) = (false, 0, 0);
    for mut input in stream.chunks(usize::from(*size) + 1) {
        while let Ok(Some(part)) = decoder.next(&mut input) {
            match &part {
                FramePart::Message(body) => {
                    let _ = sender.handle(FramePart::Message(body.clone()));
                    sender.end();
                }
                FramePart::Record(body) => {
                    sender.listed(1);
                    let _ = sender.handle(FramePart::Record(body.clone()));
                }
                FramePart::Piece(header, length) => {
                    assert_eq!(left, 0, "a piece is whole before the next");
                    let packed = *length < header.length && header.length <= 256 << 10;
                    assert!(packed || *length == header.length);
                    left = *length as usize;
                }
                FramePart::Content(bytes) => left -= bytes.len(),
            }
            match receiver.handle(part) {
                Ok(SenderItem::Offer(_)) => {
                    receiver.accept();
                    accepted = true;
                }
                Ok(SenderItem::Failed(_)) | Err(_) => {}
                Ok(SenderItem::Early(_, content)) => {
                    early += content.len();
                    assert!(accepted && early <= EARLY as usize);
                }
                Ok(_) => assert!(accepted),
            }
        }
    }
}

/// Pieces, holes and ends of one file in any order, four bytes each: the file is complete only once it has as many pieces as
/// its end states.
pub fn file_progress(data: &[u8]) {
    let Some((size, steps)) = data.split_first() else { return };
    let size = u64::from(*size) * 40_000;
    let mut file = FileProgress::new((size > 0).then_some(size));
    let (mut came, mut end) = (0, None);
    for step in steps.chunks_exact(4) {
        let piece = u32::from(step[1]) << (step[0] & 0x1f);
        let length = u64::from(step[2]) << 11;
        match step[0] >> 5 {
            0 | 1 => {
                let ended = FileEnd { entry: 0, size, pieces_sent: piece, hash: [step[3]; 32] };
                if file.handle_end(&ended).is_ok() {
                    assert_eq!(end.replace(piece), None, "a file ends once");
                }
            }
            2 => file.had(piece, &[[step[3]; 32]]),
            3 => came += u32::from(file.handle_piece(piece, length, [step[3]; 32]).is_ok()),
            _ => {
                let length = piece_length(size, piece);
                came += u32::from(file.handle_piece(piece, length, [step[3]; 32]).is_ok());
            }
        }
        assert_eq!(file.is_complete(), end == Some(came));
    }
    let _ = file.hash(&sweetspot_protocol::ZeroTree::default(), &|| true);
}

/// The body of a record: a parsed record prints as it was read.
pub fn record(data: &[u8]) {
    if let Ok(record) = Record::read(data) {
        let frame = record.to_frame();
        assert_eq!(Record::read(&frame[FRAME_HEADER_BYTES..]), Ok(record));
    }
}

/// A ticket as typed. An accepted ticket prints as it was read.
pub fn ticket(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(ticket) = text.parse::<Ticket>() {
        assert_eq!(ticket.to_string().parse(), Ok(ticket));
    }
}

/// An invitation from a peer, as it is and with a valid checksum. An accepted invitation is written as it was read.
pub fn invitation(data: &[u8]) {
    let mut checked = data.to_vec();
    checked.extend(&blake3::hash(data).as_bytes()[..4]);
    for bytes in [data, &checked] {
        if let Ok(invitation) = Invitation::from_bytes(bytes) {
            assert_eq!(invitation.to_bytes(), bytes);
        }
    }
}

/// A clients file as edited, and input typed for a key or a code. An accepted client prints as it was read, unless its
/// directory contains a quotation mark or a line break.
pub fn clients(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(clients) = text.parse::<Clients>() {
        for client in clients.list {
            assert_eq!(client.to_string().parse(), Ok(Clients { list: vec![client] }));
        }
    }
    if let Ok(key) = text.parse::<PublicKey>() {
        assert_eq!(key.to_string().parse(), Ok(key));
    }
    if let Ok(at) = text.parse::<CodeAddress>() {
        assert_eq!(at.code.password().parse(), Ok(at.code));
    }
}

/// A datagram, as it is and with a valid seal: one that opens is sealed to the same packet again.
pub fn probe(data: &[u8]) {
    let session = Session::new(Some(&Secret([1; 16])), &[2; 32]);
    let authenticator = PacketAuthenticator::new(&session);
    assert_eq!(authenticator.open(data), None, "nobody guesses a seal");
    let Some((kind, fields)) = data.split_first() else { return };
    let mut sealed = vec![*kind];
    sealed.extend(session.probe_id());
    sealed.extend(fields);
    let mac = blake3::keyed_hash(session.probe_key(), &sealed);
    sealed.extend(&mac.as_bytes()[..10]);
    if let Some(packet) = authenticator.open(&sealed) {
        let size = Bytes::new(sealed.len() as u64);
        assert_eq!(authenticator.open(&authenticator.close(&packet, size)), Some(packet));
    }
}
