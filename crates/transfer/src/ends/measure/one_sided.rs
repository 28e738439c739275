//! Measures the path to any TCP server, which need not run this program.

use std::net::{TcpStream, ToSocketAddrs};

use sweetspot_linux::{clock, tcp};
use sweetspot_measure::{
    Echo, EchoRecord, Finding, Intrusion, Report, RoundTrip, Traces, round_trip,
};
use sweetspot_units::{Bytes, Duration, Time};

use super::near_end::{Measured, TcpFacts};
use crate::{Result, TransferError};

/// Number of connections, made one after another, and the pause between them.
const CONNECTIONS: u32 = 20;
const INTERVAL: Duration = Duration::from_millis(100);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Handshake and close of a connection: seven packets of about 60 bytes.
const CONNECTION_BYTES: u64 = 7 * 60;
/// A SYN with the options that Linux sends.
const SYN_SIZE: Bytes = Bytes::new(60);

/// Measures the path to `server` (`host:port`) by TCP handshakes: RTTs, and the options that both kernels negotiate.
pub fn measure_one_sided(server: &str) -> Result<Measured> {
    let start = clock::now();
    let cannot = |source| TransferError::NoAnswer { address: server.to_owned(), source };
    let unresolved = |source| TransferError::Unreachable { address: server.to_owned(), source };
    let peer = server.to_socket_addrs().map_err(unresolved)?.next();
    let peer = peer.ok_or_else(|| unresolved(std::io::ErrorKind::NotFound.into()))?;
    let (mut echoes, mut facts, mut refused) = (Vec::new(), None, None);
    for _ in 0..CONNECTIONS {
        match TcpStream::connect_timeout(&peer, CONNECT_TIMEOUT.into()) {
            Ok(socket) => {
                let info = tcp::Info::read(&socket).map_err(TransferError::system("TCP_INFO"))?;
                // The kernel's RTT, from the SYN to its answer, without a retransmission in between.
                let received = Time::ZERO + info.rtt;
                if info.total_retrans == 0 {
                    let (sent, held) = (Time::ZERO, Duration::ZERO);
                    echoes.push(Echo { sent, reflected: Time::ZERO, held, received });
                }
                facts = Some(TcpFacts::of(&info));
            }
            // A server that rejects the first connection, or does not answer, will not answer later ones.
            Err(error) if facts.is_none() => return Err(cannot(error)),
            Err(error) => refused = Some(error),
        }
        clock::sleep_until(clock::now() + INTERVAL);
    }
    let tcp =
        facts.ok_or_else(|| cannot(refused.unwrap_or(std::io::ErrorKind::NotFound.into())))?;
    let count = echoes.len();
    let record = EchoRecord { sent: CONNECTIONS, size: SYN_SIZE, echoes };
    let bytes = u64::from(CONNECTIONS) * CONNECTION_BYTES;
    let report = Report {
        round_trip: by_handshakes(round_trip(&[record], [None, None]), count),
        changed: None,
        directions: Vec::new(),
        intrusion: Intrusion { bytes, longest_queue_s: 0.0 },
        left_out: Vec::new(),
    };
    Ok(Measured { peer, report, traces: Traces::default(), tcp, took: clock::now().since(start) })
}

/// The same results, with handshakes as their method.
fn by_handshakes(found: RoundTrip, count: usize) -> RoundTrip {
    let by = |finding, method: &str| match finding {
        Finding::Known { estimate, .. } => {
            Finding::Known { estimate, how: format!("{method} {count} handshakes") }
        }
        _ => Finding::unknown(format!("{count} of {CONNECTIONS} handshakes had no retransmission")),
    };
    RoundTrip {
        base: by(found.base, "the fastest of"),
        median: by(found.median, "the median of"),
        variation: by(found.variation, "5 to 95 % of"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_one_sided_measurement_reports_rtt_and_tcp_parameters() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let found = measure_one_sided(&address.to_string()).unwrap();
        assert_eq!(found.peer, address);
        let base = found.report.round_trip.base.estimate().unwrap();
        assert_eq!(found.report.round_trip.base.how(), "the fastest of 20 handshakes");
        assert!(base.low <= base.value && base.value < Duration::from_secs(1), "{base:?}");
        // Loopback's MTU is 65,536, but IPv4's total length has 16 bits.
        assert_eq!(found.tcp.path_mtu, Bytes::new(65_535));
        assert!(found.report.directions.is_empty());
    }

    /// No name has an empty label (RFC 1035, section 3.1), so the resolver asks nobody.
    #[test]
    fn the_error_for_an_unknown_host_is_about_its_name() {
        let error = measure_one_sided("no..such:443").unwrap_err().to_string();
        assert!(error.contains("no..such") && error.ends_with("check the host's name"), "{error}");
    }

    #[test]
    fn the_error_for_a_closed_port_names_its_address() {
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let error = measure_one_sided(&closed.to_string()).unwrap_err().to_string();
        assert!(error.contains(&closed.to_string()) && error.contains("refused"), "{error}");
    }
}
