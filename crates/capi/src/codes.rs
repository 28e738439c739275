//! Numbers of the interface. They never change; new ones may be added.

use sweetspot_socket::{
    Activity, AttachError, Autotuning, Class, EventKind, Reason, SizingPhase, SocketError,
};

/// Success.
pub const SWEETSPOT_OK: i32 = 0;
/// The descriptor is closed, or the connection has ended.
pub const SWEETSPOT_ERROR_CLOSED: i32 = -1;
/// The descriptor is not a TCP socket.
pub const SWEETSPOT_ERROR_NOT_TCP: i32 = -2;
/// The socket is a listener; attach the connections that it accepts.
pub const SWEETSPOT_ERROR_LISTENING: i32 = -3;
/// The socket is already attached.
pub const SWEETSPOT_ERROR_ALREADY_ATTACHED: i32 = -4;
/// No socket is attached under this number, for instance because it was detached.
pub const SWEETSPOT_ERROR_NOT_ATTACHED: i32 = -5;
/// The socket was attached by the parent process, before fork.
pub const SWEETSPOT_ERROR_FORKED: i32 = -6;
/// This system has no interface for sizing windows; the kernel sizes them.
pub const SWEETSPOT_ERROR_UNSUPPORTED: i32 = -7;
/// An argument is invalid: an unknown sizing or flag, a null pointer, or a structure that is too small.
pub const SWEETSPOT_ERROR_INVALID: i32 = -8;
/// A system call failed; errno has the reason.
pub const SWEETSPOT_ERROR_SYSTEM: i32 = -9;
/// A bug in the library.
pub const SWEETSPOT_ERROR_INTERNAL: i32 = -10;
/// The socket is not connected, so its peer cannot be invited yet.
pub const SWEETSPOT_ERROR_NOT_CONNECTED: i32 = -11;
/// The bytes are not an invitation, or have a version that this library does not support.
pub const SWEETSPOT_ERROR_INVITATION: i32 = -12;

/// The handshake is not complete.
pub const SWEETSPOT_CONNECTING: i32 = 0;
/// Data has flowed within the last two seconds.
pub const SWEETSPOT_ACTIVE: i32 = 1;
/// No data has flowed yet, or none for two seconds. The socket is not limited.
pub const SWEETSPOT_IDLE: i32 = 2;

/// The kernel does not report whether it autotunes the receive buffer (before Linux 5.16).
pub const SWEETSPOT_AUTOTUNING_UNKNOWN: i32 = 0;
/// The kernel autotunes the receive buffer.
pub const SWEETSPOT_AUTOTUNING_ON: i32 = 1;
/// The program has set SO_RCVBUF, so the kernel does not autotune it.
pub const SWEETSPOT_AUTOTUNING_OFF: i32 = 2;

/// The message for an error, without a full stop but with a terminating NUL.
pub fn sentence(error: i32) -> &'static str {
    match error {
        SWEETSPOT_OK => "success\0",
        SWEETSPOT_ERROR_CLOSED => "the socket is closed\0",
        SWEETSPOT_ERROR_NOT_TCP => "expected a TCP socket\0",
        SWEETSPOT_ERROR_LISTENING => "expected a connection, found a listener\0",
        SWEETSPOT_ERROR_ALREADY_ATTACHED => "the socket is attached already\0",
        SWEETSPOT_ERROR_NOT_ATTACHED => "no socket is attached under this number\0",
        SWEETSPOT_ERROR_FORKED => "the parent process attached the socket, before fork\0",
        SWEETSPOT_ERROR_UNSUPPORTED => "windows are sized on Linux alone\0",
        SWEETSPOT_ERROR_INVALID => "an argument is invalid\0",
        SWEETSPOT_ERROR_SYSTEM => "the kernel refuses a call; errno has its reason\0",
        SWEETSPOT_ERROR_INTERNAL => "a fault of the library\0",
        SWEETSPOT_ERROR_NOT_CONNECTED => "the socket is not connected\0",
        SWEETSPOT_ERROR_INVITATION => {
            "expected an invitation as the peer's library made it, of a version known here\0"
        }
        _ => "an unknown error\0",
    }
}

/// The number of an error, and errno if the kernel set one.
pub fn attach_error(error: &AttachError) -> (i32, Option<i32>) {
    match error {
        AttachError::Closed => (SWEETSPOT_ERROR_CLOSED, None),
        AttachError::NotTcp => (SWEETSPOT_ERROR_NOT_TCP, None),
        AttachError::Listening => (SWEETSPOT_ERROR_LISTENING, None),
        AttachError::AlreadyAttached => (SWEETSPOT_ERROR_ALREADY_ATTACHED, None),
        AttachError::Forked => (SWEETSPOT_ERROR_FORKED, None),
        AttachError::NotConnected => (SWEETSPOT_ERROR_NOT_CONNECTED, None),
        AttachError::UsedInvitation => (SWEETSPOT_ERROR_INVITATION, None),
        AttachError::Unsupported => (SWEETSPOT_ERROR_UNSUPPORTED, None),
        AttachError::System { source, .. } => (SWEETSPOT_ERROR_SYSTEM, source.raw_os_error()),
    }
}

/// The number of an error.
pub fn socket_error(error: SocketError) -> i32 {
    match error {
        SocketError::Closed => SWEETSPOT_ERROR_CLOSED,
        SocketError::Forked => SWEETSPOT_ERROR_FORKED,
    }
}

/// The number of an activity.
pub fn activity(activity: Activity) -> i32 {
    match activity {
        Activity::Connecting => SWEETSPOT_CONNECTING,
        Activity::Active => SWEETSPOT_ACTIVE,
        Activity::Idle => SWEETSPOT_IDLE,
    }
}

/// The number of the autotuning state, and the size of the buffer if it is not autotuned.
pub fn autotuning(autotuning: Autotuning) -> (i32, u64) {
    match autotuning {
        Autotuning::Unknown => (SWEETSPOT_AUTOTUNING_UNKNOWN, 0),
        Autotuning::On => (SWEETSPOT_AUTOTUNING_ON, 0),
        Autotuning::Off { buffer } => (SWEETSPOT_AUTOTUNING_OFF, buffer.get()),
    }
}

/// Every phase with its name; a phase's number is its index.
pub const PHASES: [(SizingPhase, &str); 7] = [
    (SizingPhase::HandsOff, "hands-off\0"),
    (SizingPhase::Measuring, "measuring\0"),
    (SizingPhase::Ramping, "ramping\0"),
    (SizingPhase::Holding, "holding\0"),
    (SizingPhase::Trying, "trying\0"),
    (SizingPhase::Open, "open\0"),
    (SizingPhase::Congested, "congested\0"),
];

/// Every reason with its text; a reason's number is its index plus one.
pub const REASONS: [(Reason, &str); 24] = [
    (Reason::CapacityKnown, "the path's capacity is known\0"),
    (Reason::PathRemembered, "the path is remembered from the last transfer\0"),
    (Reason::CapacityUnclear, "measurements of the capacity disagree\0"),
    (Reason::CapacityUnknown, "the capacity could not be measured\0"),
    (Reason::ShortPath, "the round trip is too short for a limit to matter\0"),
    (Reason::ShortTransfer, "the transfer is too short to be worth measuring\0"),
    (Reason::RateFell, "the rate fell while the limit was in force\0"),
    (Reason::RandomLoss, "a packet was lost while this transfer had no queue\0"),
    (Reason::CrossTrafficQueue, "cross traffic keeps a queue\0"),
    (Reason::PathFaster, "the path is faster than measured before\0"),
    (Reason::PathSlower, "the path is slower than measured before\0"),
    (Reason::Overflow, "the bottleneck's buffer overflowed\0"),
    (Reason::RateInelastic, "a queue persists, and the rate does not depend on the window\0"),
    (Reason::TryingMore, "the path may carry more than congestion control sends\0"),
    (Reason::NoMore, "the path has no unused capacity\0"),
    (Reason::TrialSucceeded, "a smaller window did not lower the rate\0"),
    (Reason::TrialFailed, "a smaller window lowered the rate\0"),
    (Reason::Ended, "the transfer is over\0"),
    (Reason::QueueGone, "the queue of cross traffic is gone\0"),
    (Reason::QueueBelowTarget, "the queueing delay is below the target\0"),
    (Reason::QueueAboveTarget, "the queueing delay is above the target\0"),
    (Reason::PacketLost, "a packet was lost\0"),
    (Reason::Slowdown, "a periodic slowdown to measure the base RTT\0"),
    (Reason::SlowdownOver, "growing back after the periodic slowdown\0"),
];

/// Every limiting factor with its name; a factor's number is its index.
pub const LIMITS: [(Class, &str); 14] = [
    (Class::Unknown, "unknown\0"),
    (Class::Opportunity, "opportunity\0"),
    (Class::Congestion, "congestion\0"),
    (Class::Transport, "transport\0"),
    (Class::ReceiverWindow, "receiver_window\0"),
    (Class::ReceiverApplication, "receiver_application\0"),
    (Class::SenderWindow, "sender_window\0"),
    (Class::Bandwidth, "bandwidth\0"),
    (Class::Application, "application\0"),
    (Class::Pacing, "pacing\0"),
    (Class::Stalled, "stalled\0"),
    (Class::WaitingForPeer, "waiting_for_peer\0"),
    (Class::Idle, "idle\0"),
    (Class::NeverEstablished, "never_established\0"),
];

/// Every kind of event with its name; a kind's number is its index.
pub const EVENTS: [(EventKind, &str); 11] = [
    (EventKind::Taken, "taken\0"),
    (EventKind::Held, "held\0"),
    (EventKind::Reopened, "reopened\0"),
    (EventKind::Tightened, "tightened\0"),
    (EventKind::LetGo, "let_go\0"),
    (EventKind::Lifted, "lifted\0"),
    (EventKind::Refused, "refused\0"),
    (EventKind::Gone, "gone\0"),
    (EventKind::Advised, "advised\0"),
    (EventKind::Switched, "switched\0"),
    (EventKind::Yielded, "yielded\0"),
];

/// The index of `value` in a table; 0 if the table does not contain it.
pub fn number<T: PartialEq>(table: &[(T, &str)], value: T) -> i32 {
    table.iter().position(|(known, _)| *known == value).unwrap_or(0) as i32
}

/// The name with this number, with a terminating NUL.
pub fn name<T>(table: &[(T, &'static str)], number: i32) -> &'static str {
    let known = usize::try_from(number).ok().and_then(|number| table.get(number));
    known.map_or("unknown\0", |(_, name)| name)
}
