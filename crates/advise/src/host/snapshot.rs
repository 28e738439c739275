use std::collections::BTreeMap;

use sweetspot_units::{Bytes, Rate};

use crate::{AdviceError, Kernel};

/// The settings of a host. A setting that could not be read is `None` and is not checked.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Snapshot {
    /// Its kernel.
    pub kernel: Option<Kernel>,
    /// Its settings.
    pub sysctls: Sysctls,
    /// Its memory.
    pub memory: Option<Bytes>,
    /// The size of a page: `tcp_mem` counts in them.
    pub page: Option<Bytes>,
    /// The device that the default route takes.
    pub device: Option<Device>,
    /// The `SO_RCVBUF` that the program in question sets, if it sets one.
    pub asked_receive_buffer: Option<Bytes>,
    /// Listening sockets.
    pub listeners: Vec<Listener>,
}

impl Snapshot {
    /// The other host, from the output of `sysctl -a` there. Its kernel is `kernel`, or the one that the output names, or
    /// assumed to be `here`'s.
    ///
    /// # Errors
    /// If `settings` is no such list.
    pub fn of_peer(
        settings: &str,
        kernel: Option<Kernel>,
        here: &Snapshot,
    ) -> Result<Snapshot, AdviceError> {
        let sysctls = Sysctls::read(settings)?;
        let own = sysctls.text("kernel.osrelease").and_then(|release| release.parse().ok());
        Ok(Snapshot { kernel: kernel.or(own).or(here.kernel), sysctls, ..Snapshot::default() })
    }
}

/// A listening socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// Its address, e.g. `0.0.0.0:5201`.
    pub address: String,
    /// Its receive buffer, as the kernel counts it: twice the request.
    pub receive_buffer: Bytes,
}

/// A network device.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Its speed.
    pub speed: Option<Rate>,
    /// The largest packet.
    pub mtu: Option<Bytes>,
    /// Packets that its queue holds (`txqueuelen`).
    pub queue_length: Option<u64>,
    /// Whether byte queue limits bound the driver's queue.
    pub byte_queue_limits: Option<bool>,
    /// Its queueing discipline.
    pub qdisc: Option<String>,
    /// Descriptors of the receive ring, now and at most.
    pub receive_ring: Option<(u64, u64)>,
    /// Descriptors of the transmit ring, now and at most.
    pub transmit_ring: Option<(u64, u64)>,
    /// Segmentation by the device.
    pub tso: Option<bool>,
    /// Segmentation just above the device.
    pub gso: Option<bool>,
    /// Merging of received segments.
    pub gro: Option<bool>,
}

/// Settings by their names, such as `net.ipv4.tcp_rmem`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sysctls(BTreeMap<String, String>);

impl Sysctls {
    /// Parses the output of `sysctl -a` or a sysctl.d file: lines of `name = value`. Empty lines
    /// and lines that begin with `#` or `;` are skipped.
    ///
    /// # Errors
    /// If a line is none of these, or there is no `name = value` line.
    pub fn read(text: &str) -> Result<Sysctls, AdviceError> {
        let mut all = BTreeMap::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            let (name, value) = line.split_once('=').ok_or_else(|| AdviceError::Line {
                file: "peer's sysctl",
                line: number + 1,
                given: line.chars().take(60).collect(),
                why: "it is not \"name = value\"; make the file with: sysctl -a > FILE".to_owned(),
            })?;
            // A leading "-" means that errors do not matter; sysctl.d allows "/" between names.
            let name = name.trim().trim_start_matches('-').replace('/', ".");
            all.insert(name, value.trim().to_owned());
        }
        if all.is_empty() {
            return Err(AdviceError::NotThat {
                given: text.chars().take(60).collect(),
                wanted: "a list of settings",
                example: "net.ipv4.tcp_rmem = 4096 131072 6291456",
            });
        }
        Ok(Sysctls(all))
    }

    /// Adds a setting.
    pub fn insert(&mut self, name: &str, value: &str) {
        self.0.insert(name.to_owned(), value.trim().to_owned());
    }

    /// A setting's text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A setting that is one number.
    pub fn number(&self, name: &str) -> Option<i64> {
        self.text(name)?.parse().ok()
    }

    /// A setting that is an amount of bytes.
    pub fn bytes(&self, name: &str) -> Option<Bytes> {
        self.text(name)?.parse().ok().map(Bytes::new)
    }

    /// A setting of three numbers.
    pub fn triple(&self, name: &str) -> Option<[u64; 3]> {
        let mut words = self.text(name)?.split_whitespace().map(|w| w.parse().ok());
        let mut next = || words.next().flatten();
        Some([next()?, next()?, next()?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sysctl_output_and_sysctl_d_files_are_read() {
        let s =
            Sysctls::read("# x\nnet.ipv4.tcp_rmem = 4096\t131072\t6291456\n-net/a = 1\n").unwrap();
        assert_eq!(s.triple("net.ipv4.tcp_rmem"), Some([4096, 131_072, 6_291_456]));
        assert_eq!(s.number("net.a"), Some(1));
        assert_eq!(s.number("net.b"), None);
        assert_eq!(s.triple("net.a"), None);
    }

    #[test]
    fn a_line_that_is_no_setting_is_named() {
        let e = Sysctls::read("a = 1\nrubbish\n").unwrap_err().to_string();
        assert!(e.starts_with("line 2 of the peer's sysctl file, \"rubbish\":"), "{e}");
        assert!(Sysctls::read("\n").is_err());
    }
}
