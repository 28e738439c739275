use thiserror::Error;

pub(super) type Result<T> = std::result::Result<T, CaptureError>;

/// Why a capture cannot be read, or not further.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CaptureError {
    /// There is nothing in it.
    #[error("it is empty; was anything captured?")]
    Empty,
    /// None of the formats that are known.
    #[error(
        "it is neither pcap nor pcapng nor snoop but {found}; make one with tcpdump -w FILE or dumpcap -w FILE"
    )]
    NotACapture {
        /// The format that its first bytes suggest.
        found: &'static str,
    },
    /// A version of the format that nobody defined yet.
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
    /// It ends within the header before the first record.
    #[error("it was cut off within its header, before any packet; capture or copy it again")]
    HeaderCutOff,
    /// It ends within a record.
    #[error(
        "it was cut off in the middle of a packet, {at} bytes from its start; everything before that was read"
    )]
    CutOff {
        /// Where the record begins that is not whole.
        at: u64,
    },
    /// The record at this place is invalid.
    #[error("it is corrupt {at} bytes from its start: {what}; everything before that was read")]
    Corrupt {
        /// Where.
        at: u64,
        /// The fault.
        what: &'static str,
    },
}
