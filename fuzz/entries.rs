//! What a hostile peer can feed, as functions of bytes. The fuzz targets drive them
//! (`cargo +nightly fuzz run frames`), and so do the property tests of `sweetspot-protocol`.

#![allow(dead_code, reason = "each target uses one")]

use sweetspot_protocol::frame::{FrameDecoder, FramePart};
use sweetspot_protocol::probe::PacketAuthenticator;
use sweetspot_protocol::{ReceiverOrder, Secret, SenderItem, SenderOrder, Session, Ticket};
use sweetspot_units::Bytes;

/// A stream as the receiver and the sender read it, cut into reads of a size that the first byte
/// says. Content passed on never exceeds what the accepted hello announced.
pub fn frames(data: &[u8]) {
    let Some((size, stream)) = data.split_first() else { return };
    let (mut decoder, mut receiver, mut sender) =
        (FrameDecoder::default(), ReceiverOrder::default(), SenderOrder::default());
    let (mut announced, mut passed) = (0, 0);
    for mut input in stream.chunks(usize::from(*size) + 1) {
        while let Ok(Some(piece)) = decoder.next(&mut input) {
            if let FramePart::Message(body) = &piece {
                let _ = sender.handle(FramePart::Message(body.clone()));
                sender.end();
            }
            match receiver.handle(piece) {
                Ok(SenderItem::Hello(hello)) => {
                    announced = hello.size;
                    receiver.accept();
                }
                Ok(SenderItem::Content(bytes)) => passed += bytes.len() as u64,
                Ok(SenderItem::End { .. }) => assert_eq!(passed, announced),
                Ok(SenderItem::SenderSummary(_) | SenderItem::Failed(_)) | Err(_) => {}
            }
            assert!(passed <= announced);
        }
    }
}

/// A ticket as typed. One that is taken is printed as it was read.
pub fn ticket(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(ticket) = text.parse::<Ticket>() {
        assert_eq!(ticket.to_string().parse(), Ok(ticket));
    }
}

/// A datagram, as it is and with a good seal under it: what opens is closed to the same packet.
pub fn probe(data: &[u8]) {
    let session = Session::new(&Secret([1; 16]), &[2; 32]);
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
