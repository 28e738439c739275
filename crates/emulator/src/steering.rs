//! The division of work among processors: one forwards the packets, the others do the hosts' receive work.
//!
//! A veth passes a packet to the network stack of its other end within the sender's system call. Without steering, the
//! loop would run the receiving hosts' TCP between two releases. It would be late if a sender retransmits heavily,
//! because each acknowledgement then sets a timer (20 us and more on a virtual machine). A network card only hands a
//! packet over; with receive packet steering, a veth does the same.

use std::fmt::Write;
use std::{fs, io};

use sweetspot_linux::scheduling;

/// The processors for forwarding, in order of preference. The last ones come first, because the first processor often
/// handles the machine's interrupts.
pub(crate) fn carriers() -> io::Result<Vec<usize>> {
    let mut processors = scheduling::allowed_processors()?;
    processors.reverse();
    Ok(processors)
}

/// Makes devices that are created from now on in the calling thread's namespace receive on processors other than the
/// forwarding one (`net.core.rps_default_mask`). No effect with one processor, or before Linux 6.3.
pub(crate) fn receive_elsewhere() -> io::Result<()> {
    let carriers = carriers()?;
    match fs::write("/proc/sys/net/core/rps_default_mask", mask(carriers.get(1..).unwrap_or(&[]))) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// A set of processors in the kernel's format: words of 32 bits, the highest first.
fn mask(processors: &[usize]) -> String {
    let words = processors.iter().max().map_or(1, |max| max / 32 + 1);
    let mut text = String::new();
    for word in (0..words).rev() {
        let own = processors.iter().filter(|processor| *processor / 32 == word);
        let bits = own.fold(0_u32, |bits, processor| bits | 1 << (processor % 32));
        let comma = if text.is_empty() { "" } else { "," };
        let _ = write!(text, "{comma}{bits:08x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_has_a_bit_for_each_processor() {
        assert_eq!(mask(&[]), "00000000");
        assert_eq!(mask(&[0]), "00000001");
        // 3 = 0b11; processor 35 is bit 3 of the second word.
        assert_eq!(mask(&[35, 1, 0]), "00000008,00000003");
        assert_eq!(mask(&[64]), "00000001,00000000,00000000");
    }
}
