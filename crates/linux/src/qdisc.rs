//! The queueing discipline of a device, read by rtnetlink (RTM_GETQDISC, linux/rtnetlink.h).

use std::io;

use crate::netlink::{self, Netlink};

/// `struct tcmsg`.
const TCMSG_BYTES: usize = 20;
const TCA_KIND: u16 = 1;
const TC_H_ROOT: u32 = 0xffff_ffff;

/// The kind of the root queueing discipline of device number `device`, such as `fq`; `None` if it has none.
pub fn root(device: i32) -> io::Result<Option<String>> {
    let mut kind = None;
    let mut visit = |message: &[u8]| kind = kind.take().or_else(|| root_kind(message, device));
    Netlink::open(libc::NETLINK_ROUTE)?.ask(
        libc::RTM_GETQDISC,
        libc::NLM_F_DUMP,
        &[0; TCMSG_BYTES],
        &mut visit,
    )?;
    Ok(kind)
}

/// The kind, if `message` describes the root discipline of `device`.
fn root_kind(message: &[u8], device: i32) -> Option<String> {
    let word = |at: usize| message.get(at..at + 4).map(|b| [b[0], b[1], b[2], b[3]]);
    // tcm_ifindex and tcm_parent.
    if i32::from_ne_bytes(word(4)?) != device || u32::from_ne_bytes(word(12)?) != TC_H_ROOT {
        return None;
    }
    let mut attributes = message.get(TCMSG_BYTES..)?;
    while let Some((kind, content, rest)) = netlink::attribute(attributes) {
        if kind == TCA_KIND {
            let name = content.split(|b| *b == 0).next()?;
            return Some(String::from_utf8_lossy(name).into_owned());
        }
        attributes = rest;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_device_has_the_discipline_noqueue() {
        // Its index is 1 in every network namespace.
        let kind = root(1).unwrap();
        assert!(kind.as_deref().is_none_or(|k| k == "noqueue"), "{kind:?}");
    }

    #[test]
    fn a_device_that_is_not_there_has_none() {
        assert_eq!(root(i32::MAX).unwrap(), None);
    }

    #[test]
    fn truncated_answers_end_the_walk() {
        assert_eq!(root_kind(&[0; 3], 1), None);
        assert_eq!(root_kind(&[0; 20], 1), None);
    }
}
