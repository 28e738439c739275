//! Whole sessions with a hostile peer, as the fuzz targets `incoming` and `outgoing` run them.

#[path = "../../../fuzz/sessions/mod.rs"]
mod sessions;

use proptest::prelude::*;

proptest! {
    // Each case has one or two TLS connections, and a few dozen operations.
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// The server ends every session. The client's directory stays within its quota, and contains no foreign modes,
    /// attributes or links.
    #[test]
    fn no_message_sequence_of_a_hostile_sender_breaks_a_law(data in proptest::collection::vec(any::<u8>(), 0..160)) {
        sessions::incoming(&data);
    }

    /// The server ends every session, and sends nothing from outside the client's directory.
    #[test]
    fn no_message_sequence_of_a_hostile_receiver_breaks_a_law(data in proptest::collection::vec(any::<u8>(), 0..100)) {
        sessions::outgoing(&data);
    }
}
