use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// The length of the longest name, including its terminating zero (`TCP_CA_NAME_MAX`).
const MAX_BYTES: usize = 16;

/// The name of a congestion control, as the socket option `TCP_CONGESTION` takes it.
///
/// ```
/// use sweetspot_control::CongestionName;
///
/// let bbr: CongestionName = "bbr".parse()?;
/// assert_eq!(bbr.to_string(), "bbr");
/// assert_eq!(bbr.bytes()[..4], *b"bbr\0");
/// assert!("no name of any".parse::<CongestionName>().is_err());
/// # Ok::<(), sweetspot_control::CongestionNameError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CongestionName([u8; MAX_BYTES]);

/// The text is not a valid name of a Linux congestion control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "write a name that sysctl net.ipv4.tcp_available_congestion_control lists, such as \"bbr\""
)]
#[non_exhaustive]
pub struct CongestionNameError;

impl CongestionName {
    /// The name, padded with zeros.
    pub fn bytes(self) -> [u8; MAX_BYTES] {
        self.0
    }
}

impl FromStr for CongestionName {
    type Err = CongestionNameError;

    fn from_str(text: &str) -> Result<CongestionName, CongestionNameError> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if text.is_empty() || text.len() >= MAX_BYTES || !text.bytes().all(is_name) {
            return Err(CongestionNameError);
        }
        let mut name = [0; MAX_BYTES];
        name[..text.len()].copy_from_slice(text.as_bytes());
        Ok(CongestionName(name))
    }
}

impl fmt::Display for CongestionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0.iter().take_while(|byte| **byte != 0);
        f.pad(&bytes.map(|byte| char::from(*byte)).collect::<String>())
    }
}
