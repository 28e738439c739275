use std::collections::BTreeMap;

use sweetspot_units::{Bytes, Rate};

use crate::{AdviceError, Kernel};

/// The settings of a host. A setting that could not be read is `None` and is not checked.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Snapshot {
    /// The version of the kernel.
    pub kernel: Option<Kernel>,
    /// The sysctls that were read.
    pub sysctls: Sysctls,
    /// The size of the host's memory.
    pub memory: Option<Bytes>,
    /// The page size, the unit of `tcp_mem`.
    pub page: Option<Bytes>,
    /// The device of the default route.
    pub device: Option<Device>,
    /// The `SO_RCVBUF` that the program in question sets, if it sets one.
    pub asked_receive_buffer: Option<Bytes>,
    /// Listening sockets.
    pub listeners: Vec<Listener>,
}

impl Snapshot {
    /// The other host, from the output of `sysctl -a` there. Its kernel is `kernel`, the one named in the output, or
    /// assumed to be the same as `here`'s.
    ///
    /// # Errors
    /// If `settings` cannot be parsed as such a list.
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
    /// Its receive buffer as reported by the kernel: twice the requested size.
    pub receive_buffer: Bytes,
}

/// A network device.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Its speed.
    pub speed: Option<Rate>,
    /// The MTU.
    pub mtu: Option<Bytes>,
    /// The length of its queue, in packets (`txqueuelen`).
    pub queue_length: Option<u64>,
    /// Whether byte queue limits bound the driver's queue.
    pub byte_queue_limits: Option<bool>,
    /// Its queueing discipline.
    pub qdisc: Option<String>,
    /// Descriptors of the receive ring: present and maximum.
    pub receive_ring: Option<(u64, u64)>,
    /// Descriptors of the transmit ring: present and maximum.
    pub transmit_ring: Option<(u64, u64)>,
    /// Whether the device segments packets (TSO).
    pub tso: Option<bool>,
    /// Whether the kernel segments packets just above the device (GSO).
    pub gso: Option<bool>,
    /// Whether received segments are merged (GRO).
    pub gro: Option<bool>,
}

/// Settings by name, such as `net.ipv4.tcp_rmem`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sysctls(BTreeMap<String, String>);

impl Sysctls {
    /// Parses the output of `sysctl -a` or a sysctl.d file: lines of `name = value`. Empty lines
    /// and lines that begin with `#` or `;` are skipped.
    ///
    /// # Errors
    /// If a line has another form, or there is no `name = value` line.
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
            // A leading "-" tells sysctl to ignore errors; sysctl.d allows "/" between names.
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

    /// A setting that is a number of bytes.
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
    fn the_error_quotes_a_malformed_line_with_its_number() {
        let e = Sysctls::read("a = 1\nrubbish\n").unwrap_err().to_string();
        assert!(e.starts_with("line 2 of the peer's sysctl file, \"rubbish\":"), "{e}");
        assert!(Sysctls::read("\n").is_err());
    }
}
