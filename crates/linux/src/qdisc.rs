//! The queueing discipline of a device, read by rtnetlink (RTM_GETQDISC, linux/rtnetlink.h).

use std::io;

use netlink_packet_core::NLM_F_DUMP;
use netlink_packet_route::tc::{TcHandle, TcHeader};

use crate::netlink::{self, Netlink};

/// `struct tcmsg`.
const TCMSG_BYTES: usize = 20;
const TCA_KIND: u16 = 1;

/// The kind of the root queueing discipline of device number `device`, such as `fq`; `None` if it has none.
pub fn root(device: i32) -> io::Result<Option<String>> {
    let mut kind = None;
    let mut visit = |_, message: &[u8]| kind = kind.take().or_else(|| root_kind(message, device));
    Netlink::open(None)?.query(libc::RTM_GETQDISC, NLM_F_DUMP, &[0; TCMSG_BYTES], &mut visit)?;
    Ok(kind)
}

/// The kind, if `message` describes the root discipline of `device`. Its other attributes depend on the
/// discipline and are not read.
fn root_kind(message: &[u8], device: i32) -> Option<String> {
    let header = TcHeader::parse(message).ok()?;
    if header.index != device || header.parent != TcHandle::ROOT {
        return None;
    }
    let kind = netlink::attributes(&message[TCMSG_BYTES..]).find(|a| a.kind() == TCA_KIND)?;
    Some(netlink::text(kind.value()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_qdisc_is_noqueue() {
        // The loopback device has index 1 in every network namespace.
        let kind = root(1).unwrap();
        assert!(kind.as_deref().is_none_or(|k| k == "noqueue"), "{kind:?}");
    }

    #[test]
    fn a_missing_device_has_no_qdisc() {
        assert_eq!(root(i32::MAX).unwrap(), None);
    }

    #[test]
    fn truncated_answers_end_the_walk() {
        assert_eq!(root_kind(&[0; 3], 1), None);
        assert_eq!(root_kind(&[0; 20], 1), None);
    }
}
