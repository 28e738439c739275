//! Every limit on the cost of one peer: memory, records, connections, descriptors, CPU and time.
//!
//! A peer is unauthenticated until it proves a credential, and may be hostile even after that. Each limit has one line with
//! the reason for its value. The limits of frames are in `sweetspot_protocol::frame` and `record`.

use sweetspot_protocol::record::MAX_BATCH;
use sweetspot_units::{Bytes, Duration};

// Connections.

/// Maximum unauthenticated connections at once. Each costs a thread and a TLS handshake.
pub(crate) const MAX_UNAUTHENTICATED: usize = 256;
/// Maximum unauthenticated connections from one network: an IPv4 address, or an IPv6 prefix of 64 bits.
pub(crate) const MAX_PER_NETWORK: usize = 32;
/// Maximum sessions at once: transfers and measurements. Each has about twelve threads.
pub(crate) const MAX_SESSIONS: usize = 128;
/// One client's maximum share of all sessions, as a divisor: a hostile client leaves three quarters to the others.
const CLIENT_SHARE: usize = 4;
/// Extra sessions that may take over a transfer after its path broke: the old session may not have noticed yet.
pub(crate) const MAX_TAKEOVERS: usize = 4;
/// Maximum connections of all sessions together: each has a thread, and a service usually has 4,915 (TasksMax).
pub(crate) const MAX_CONNECTIONS: usize = 2048;
/// Maximum connections of one session over its life: no receiver asks for more.
pub(crate) const MAX_SESSION_CONNECTIONS: usize = sweetspot_protocol::MAX_STREAMS as usize;

// Descriptors.

/// Descriptors of the process itself: standard streams, logs, the listener, and the files of clients and uses.
const RESERVED_DESCRIPTORS: usize = 64;
/// Descriptors of an unauthenticated connection, or of a session's first: its socket, and a second handle to end it.
const CONNECTION_DESCRIPTORS: usize = 2;
/// Descriptors of a session in addition to its connections: directories that stay open, events, a socket for datagrams, files.
const SESSION_DESCRIPTORS: usize = 128;

/// The numbers of sessions and connections that a server admits with its descriptor limit, so that no peer exhausts the
/// descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Capacity {
    pub unauthenticated: usize,
    pub sessions: usize,
    pub sessions_per_client: usize,
    /// Connections of all sessions, including the first of each.
    pub connections: usize,
}

impl Capacity {
    /// Half of the descriptors are for sessions, a quarter for their connections, and a quarter for unauthenticated
    /// connections.
    pub fn of(descriptors: u64) -> Capacity {
        let all = usize::try_from(descriptors).unwrap_or(usize::MAX);
        let all = all.saturating_sub(RESERVED_DESCRIPTORS);
        let within = |max: usize, share: usize| max.min(share).max(1);
        let sessions = within(MAX_SESSIONS, all / 2 / SESSION_DESCRIPTORS);
        Capacity {
            unauthenticated: within(MAX_UNAUTHENTICATED, all / 4 / CONNECTION_DESCRIPTORS),
            sessions,
            // With few sessions, a client may still have two, so that it can run two transfers at once.
            sessions_per_client: (sessions / CLIENT_SHARE).max(2).min(sessions),
            connections: within(MAX_CONNECTIONS, all / 4 / CONNECTION_DESCRIPTORS),
        }
    }
}

// Time.

/// Time limit for a connection's first bytes: a silent stranger costs little.
pub(crate) const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(3);
/// Time limit to prove a credential, including TLS: a slow path needs a few round trips.
pub(crate) const ADMISSION_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum silence of a peer in either direction: a path that is down for longer needs a new connection.
pub(crate) const PEER_TIMEOUT: Duration = Duration::from_secs(30);
/// Keepalive interval: several times within [`PEER_TIMEOUT`].
pub(crate) const BUSY_INTERVAL: Duration = Duration::from_secs(5);
/// How long a transfer continues while its connection is down: a stopped server exits within two seconds.
pub(crate) const DOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// Time limit for an admitted peer's offer: it knows its files before it connects.
pub(crate) const OFFER_TIMEOUT: Duration = Duration::from_secs(30);
/// Extra time for a frame to arrive, in addition to the time at [`MIN_FRAME_RATE`]: two outages just short of a broken path.
pub(crate) const FRAME_GRACE: Duration = Duration::from_secs(60);
/// Minimum rate at which a frame must arrive, bytes per second: a share of the slowest path over all connections.
pub(crate) const MIN_FRAME_RATE: u64 = 32;
/// Maximum time of a session without a byte or a file: a sender may compare twenty terabytes in this time.
pub(crate) const LONGEST_STALL: Duration = Duration::from_secs(24 * 3600);
/// Time limit for sending the final message: a peer that reads nothing cannot hold a thread.
pub(crate) const PARTING_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a new transfer with a one-time ticket waits for the previous one, which may be about to end.
pub(crate) const TURN_TIMEOUT: Duration = Duration::from_secs(2);
/// Polling interval of that wait.
pub(crate) const TURN_INTERVAL: Duration = Duration::from_millis(20);

// Credentials.

/// Wrong attempts that invalidate a code: an attacker has one guess, at 1 in 8.6 billion (33 bits).
pub(crate) const MAX_WRONG_TRIES: u32 = 1;
/// Maximum peers that proved a code and may reconnect at once.
pub(crate) const MAX_PEERS_PER_CODE: usize = 32;
/// How long a half-written clients file must stay unchanged: longer than any editor takes to write it.
pub(crate) const CLIENTS_SETTLE: Duration = Duration::from_secs(10);

/// Maximum size of a clients file, bytes: something else may have been written there by accident.
pub(crate) const MAX_CLIENTS_FILE_BYTES: u64 = 16 << 20;

// Lists of files.

/// Maximum entries that a sender lists ahead of the finished ones: it keeps them for a receiver that does not answer.
pub(crate) const MAX_AHEAD: u64 = 16 << 10;
/// Content that a receiver accepts before it has answered, bytes: four times TCP's usual initial window; more is useless
/// within a round trip.
pub(crate) const MAX_EARLY_CONTENT: u32 = 64 << 10;
/// Maximum files that are requested and incomplete: honest senders list no further ahead.
pub(crate) const MAX_OPEN_FILES: usize = 1 << 16;
/// Maximum failures kept with their text: a peer may cause any number of them.
pub(crate) const MAX_FAILURE_LINES: usize = 100;

// Memory of finished transfers, over all clients.

/// Directories that transfers created: 40 bytes each, and more than most trees have.
pub(crate) const MAX_MADE_DIRECTORIES: usize = 1 << 16;
/// Files from clients without the right to read: about 50 bytes each. Clients cannot resend older ones.
pub(crate) const MAX_BROUGHT_FILES: usize = 1 << 18;

/// Maximum unconfirmed files that a sender keeps. Together with [`MAX_AHEAD`] entries listed beyond them, they stay below
/// [`MAX_OPEN_FILES`].
pub(crate) const MAX_UNCONFIRMED: usize = 32 << 10;
/// Hashes from a receiver that its sender has not used yet, 32 bytes each: of 512 GiB of content.
pub(crate) const MAX_WAITING_HASHES: usize = 2 << 20;
/// Maximum pieces with hashes that a sender keeps, in case a file changes: enough for 1 TiB of content.
pub(crate) const MAX_KEPT_HASHES: u64 = 4 << 20;
/// Maximum length of a controller phase's name that a sender keeps, characters: ours are shorter.
pub(crate) const MAX_PHASE_LENGTH: usize = 32;

// A receiver's memory for a transfer. In total a hostile sender can make it use about 150 MB. An honest sender of a million
// files makes it use a third of that.

/// Entries that await an answer, bytes of memory: as many as an honest sender lists ahead, with names of 200 bytes.
pub(crate) const MAX_QUEUED_BYTES: usize = 8 << 20;
/// Names and attributes of requested, incomplete files, bytes: 2 KB for each entry that a sender lists ahead.
pub(crate) const MAX_OPEN_BYTES: usize = 32 << 20;
/// Maximum total size of one entry's extended attributes, bytes: Linux's maximum for one attribute (XATTR_SIZE_MAX).
pub(crate) const MAX_ATTRIBUTE_BYTES: usize = 64 << 10;
/// Names that hard links and directories refer to, bytes: enough for a million files with names of 40 letters.
pub(crate) const MAX_LISTED_BYTES: usize = 48 << 20;
/// Unfinished files that a transfer has open at once, within [`SESSION_DESCRIPTORS`]: an honest sender sends a few at a
/// time.
pub(crate) const MAX_UNFINISHED_FILES: usize = 40;
/// Compared files that are longer than a piece: a transfer reads none of them twice.
pub(crate) const MAX_COMPARED_FILES: usize = 1 << 21;
/// Names that a receiver compares with its own before deleting the rest, 8 bytes each. With more, it deletes nothing.
pub(crate) const MAX_COMPARED_NAMES: usize = 1 << 22;
/// Maximum length of a kept reason for a failure, bytes: a name and a sentence.
pub(crate) const MAX_REASON_BYTES: usize = 512;
/// Maximum size of a dry run's list, bytes: a hundred thousand names.
pub(crate) const MAX_WOULD_MOVE_BYTES: usize = 16 << 20;

// Holes: a few bytes of a record represent terabytes of zeros.

/// Maximum length of a sparse file, bytes: the same as on ext4.
pub(crate) const MAX_SPARSE_BYTES: u64 = 16 << 40;
/// Runs of holes in the open files: each takes about 20 bytes.
pub(crate) const MAX_HOLE_RUNS: usize = 1 << 20;
/// Pieces of holes that a transfer may cause to be hashed, 256 KiB each: 1 TiB, five minutes of one CPU.
pub(crate) const FREE_HOLE_PIECES: u64 = 1 << 22;
/// Holes per piece of content: usually a tenth of a disk image is content.
pub(crate) const HOLES_PER_PIECE: u64 = 64;
/// Hole pieces compared with an existing file, 1 GiB, in addition to [`HOLES_PER_PIECE`].
pub(crate) const FREE_COMPARED_PIECES: u64 = 1 << 12;
/// Holes queued for early hashing: further ones are hashed when their file is complete.
pub(crate) const MAX_WAITING_HOLES: usize = 1024;

// Datagrams and measurements.

/// Maximum datagrams on the whole server that arrived before their transfer's hello.
pub(crate) const MAX_EARLY_DATAGRAMS: usize = 64;
/// Maximum length of such a datagram, bytes: a hole punch is shorter.
pub(crate) const MAX_EARLY_BYTES: usize = 128;
/// Maximum packets in a measurement's stream: no measurement of ours asks for more.
pub(crate) const MAX_STREAM_PACKETS: u32 = 200_000;
/// Maximum payload of such a packet, bytes: a jumbo frame without IP and UDP headers.
pub(crate) const MAX_STREAM_PAYLOAD_BYTES: u32 = 9216 - 28;
/// Maximum duration of a stream or load: no measurement of ours asks for a longer one.
pub(crate) const LONGEST_LOAD: Duration = Duration::from_secs(60);
/// Maximum duration of a measurement: fifteen times as long as the longest of ours.
pub(crate) const LONGEST_MEASUREMENT: Duration = Duration::from_secs(15 * 60);
/// Period in which a client's measurements may use [`MEASURE_BYTES`] and [`MEASURE_TIME`].
pub(crate) const MEASURE_INTERVAL: Duration = Duration::from_secs(3600);
/// Bytes that they may make this end send: one full measurement of a path of 10 Gbit/s.
pub(crate) const MEASURE_BYTES: Bytes = Bytes::new(32_000_000_000);
/// Time for which they may make this end send: about ten full measurements.
pub(crate) const MEASURE_TIME: Duration = Duration::from_secs(600);
/// A peer without a request for this long has disconnected: it may itself send for up to [`LONGEST_LOAD`].
pub(crate) const ORDER_TIMEOUT: Duration = Duration::from_secs(90);
/// Maximum arrivals that a measurement keeps: twice [`MAX_STREAM_PACKETS`], because a network may duplicate each.
pub(crate) const MAX_STREAM_ARRIVALS: usize = 400_000;
/// Maximum streams with kept arrivals: one is in progress at a time, and packets of older ones may be late.
pub(crate) const MAX_KEPT_STREAMS: usize = 4;

const _: () = assert!(MAX_AHEAD as usize + 2 * MAX_BATCH + MAX_UNCONFIRMED <= MAX_OPEN_FILES);
const _: () = assert!(ADMISSION_TIMEOUT.as_nanos() < PEER_TIMEOUT.as_nanos());

/// Memory that extended attributes occupy, bytes.
pub(crate) fn attribute_bytes(attributes: &[(Vec<u8>, Vec<u8>)]) -> usize {
    let bytes = |(name, value): &(Vec<u8>, Vec<u8>)| {
        size_of::<(Vec<u8>, Vec<u8>)>() + name.len() + value.len()
    };
    attributes.iter().map(bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admitted_connections_never_exhaust_the_servers_descriptors() {
        for descriptors in [256, 1024, 4096, 65_536, 1 << 30] {
            let Capacity { unauthenticated, sessions, connections, .. } = Capacity::of(descriptors);
            let committed = CONNECTION_DESCRIPTORS * (unauthenticated + connections)
                + SESSION_DESCRIPTORS * sessions;
            let left = descriptors as usize - committed.min(descriptors as usize);
            assert!(left >= RESERVED_DESCRIPTORS / 2, "{descriptors}: {committed} are taken");
        }
        // (1024 - 64) / 2 / 128 sessions, and 960 / 4 / 2 connections of either kind.
        let small = Capacity {
            unauthenticated: 120,
            sessions: 3,
            sessions_per_client: 2,
            connections: 120,
        };
        assert_eq!(Capacity::of(1024), small);
        let large = Capacity {
            unauthenticated: MAX_UNAUTHENTICATED,
            sessions: MAX_SESSIONS,
            sessions_per_client: 32,
            connections: MAX_CONNECTIONS,
        };
        assert_eq!(Capacity::of(1 << 20), large);
    }
}
