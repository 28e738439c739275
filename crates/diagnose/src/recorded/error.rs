use thiserror::Error;

use crate::evidence::LOG_COMMAND;

/// Why no recordings can be read from a text.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The text is empty.
    #[error("it is empty; was anything logged?")]
    Empty,
    /// The text has none of the known formats.
    #[error(
        "expected a capture, the output of ss -ti, NDT7's JSON, iperf3's, or an archive of tcp-info; log with: \
         {LOG_COMMAND}"
    )]
    Alien,
    /// The text begins like JSON but is not valid JSON.
    #[error("it is not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The JSON does not have the kernel's statistics.
    #[error(
        "this JSON has no TCPInfo; expected results of NDT7 or of iperf3 --json, or an archive of tcp-info"
    )]
    NoTcpInfo,
    /// A result of this program, written by this verb.
    #[error("it is a result of sweetspot {0}; open it with sweetspot report")]
    OwnResult(&'static str),
    /// The table that iperf3 prints without --json.
    #[error("it is the text output of iperf3; run iperf3 --json at the sender")]
    Iperf3Text,
    /// The result of a failed iperf3 test, with iperf3's error.
    #[error("iperf3 failed: {0}")]
    Iperf3Failed(String),
    /// A result of iperf3 from an end that did not send.
    #[error("expected a sender's intervals with snd_cwnd and rtt: run iperf3 --json at the sender")]
    NoIntervals,
    /// The output of ss without options.
    #[error("it lists connections without their counters; ss prints these with -i: ss -ti")]
    NoCounters,
    /// Connections in FIN-WAIT-2 or TIME-WAIT: the kernel keeps no counters for them.
    #[error(
        "its connections are closing and have no counters any more; run ss while the transfer runs"
    )]
    Closing,
    /// The output of ss on a host without connections.
    #[error("ss lists no connection in it; run ss while the transfer runs")]
    NoConnection,
    /// All connections may still open.
    #[error("its connections are still opening; run ss again in a few seconds")]
    Opening,
    /// No line about a connection can be parsed. Contains the first such line.
    #[error("no connection in it was understood; the first is: {0}")]
    NotUnderstood(String),
    /// One reading of sockets that only received.
    #[error(
        "this socket only received; one reading cannot show its limit; log several: {LOG_COMMAND}"
    )]
    OnlyReceived,
    /// One reading, of a kernel that does not count times, or before anything was acknowledged.
    #[error(
        "expected two readings, or one after data was acknowledged, with its busy time (Linux 4.9); log with: {LOG_COMMAND}"
    )]
    OneReading,
}
