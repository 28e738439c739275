use thiserror::Error;

pub(super) type Result<T> = std::result::Result<T, CaptureError>;

/// Why a capture cannot be read, or not to its end.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CaptureError {
    /// The capture is empty.
    #[error("it is empty; was anything captured?")]
    Empty,
    /// The format is not supported.
    #[error(
        "it is neither pcap nor pcapng nor snoop but {found}; make one with tcpdump -w FILE or dumpcap -w FILE"
    )]
    NotACapture {
        /// The format that the first bytes suggest.
        found: &'static str,
    },
    /// The version of the format is unknown.
    #[error(
        "it is {format} version {major}.{minor}, which is not known here; convert it: editcap -F pcap FILE OTHER"
    )]
    Version {
        /// The format.
        format: &'static str,
        /// The version in the header.
        major: u16,
        /// The minor version in the header.
        minor: u16,
    },
    /// The capture ends within its header.
    #[error("it was cut off within its header, before any packet; capture or copy it again")]
    HeaderCutOff,
    /// It ends after its header, or within the first record.
    #[error("it holds no whole packet; check the interface and the filter, and capture again")]
    NoPacket,
    /// It ends within a record.
    #[error(
        "it was cut off in the middle of a packet, {at} bytes from its start; everything before that was read"
    )]
    CutOff {
        /// The offset of the incomplete record.
        at: u64,
    },
    /// A record is invalid.
    #[error("it is corrupt {at} bytes from its start: {what}; everything before that was read")]
    Corrupt {
        /// The offset of the record.
        at: u64,
        /// The error in the record.
        what: &'static str,
    },
}
