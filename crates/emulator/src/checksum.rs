//! Checksums of the Internet protocols.

/// Folds a sum of 16-bit words in ones' complement (RFC 1071): adds the carry beyond 16 bits again.
pub(crate) fn fold(sum: u32) -> u16 {
    let folded = (sum & 0xffff) + (sum >> 16);
    ((folded & 0xffff) + (folded >> 16)) as u16
}
