//! Whole sessions with a hostile peer, as the fuzz targets `incoming` and `outgoing` run them.

#[path = "../../../fuzz/sessions/mod.rs"]
mod sessions;

use proptest::prelude::*;

proptest! {
    // Each is a TLS connection or two, and a few dozen operations.
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// The server ends every session; the client's directory stays within its quota and gets no foreign modes, attributes
    /// or links.
    #[test]
    fn no_sequence_of_a_hostile_sender_breaks_a_law(data in proptest::collection::vec(any::<u8>(), 0..160)) {
        sessions::incoming(&data);
    }

    /// The server ends every session, and sends nothing from outside of the client's directory.
    #[test]
    fn no_sequence_of_a_hostile_receiver_breaks_a_law(data in proptest::collection::vec(any::<u8>(), 0..100)) {
        sessions::outgoing(&data);
    }
}
