//! Structures of the interface.

use std::ffi::{c_char, c_void};

use sweetspot_socket::{Report, SocketEvent};

use crate::codes;

/// No limit, in fields that hold limits.
pub const SWEETSPOT_UNLIMITED: u64 = u64::MAX;

/// The size of an invitation in bytes; see sweetspot_invite. No version of the library makes one larger than 64.
pub const SWEETSPOT_INVITATION_BYTES: usize = 24;

/// Leave the socket's sending alone. Without this flag, it is paced when a standing queue forms (SO_MAX_PACING_RATE).
pub const SWEETSPOT_NO_UPLOADS: u32 = 1;
/// Turn the kernel's autotuning back on if the program turned it off by setting SO_RCVBUF or SO_SNDBUF (Linux 5.16). It
/// stays on after the socket is detached.
pub const SWEETSPOT_UNLOCK_BUFFERS: u32 = 2;

/// All flags.
pub(crate) const FLAGS: u32 = SWEETSPOT_NO_UPLOADS | SWEETSPOT_UNLOCK_BUFFERS;

/// The state of an attached socket when it was last sampled. Set `struct_size` before each call.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
#[allow(non_camel_case_types)]
pub struct sweetspot_status {
    /// sizeof(sweetspot_status).
    pub struct_size: u32,
    /// SWEETSPOT_CONNECTING, SWEETSPOT_ACTIVE or SWEETSPOT_IDLE.
    pub activity: i32,
    /// Whether most data is sent (1) or received (0).
    pub is_sender: i32,
    /// The phase of the window's controller; see sweetspot_phase_name.
    pub phase: i32,
    /// Why the controller entered that phase; 0 in its first phase. See sweetspot_reason_name.
    pub reason: i32,
    /// The limiting factor during the last seconds; see sweetspot_limit_name.
    pub limiting_factor: i32,
    /// Whether the kernel autotunes the receive buffer: one of SWEETSPOT_AUTOTUNING_*.
    pub autotuning: i32,
    /// Whether the library at the other end responds (1) or not (0); see sweetspot_invite and sweetspot_join.
    pub both_ends: i32,
    /// The receive buffer if it is not autotuned, in bytes; otherwise 0.
    pub locked_receive_buffer: u64,
    /// Payload received, in bytes.
    pub received: u64,
    /// Payload acknowledged by the peer, in bytes.
    pub acked: u64,
    /// The window that the kernel advertised last, in bytes; 0 on kernels before 6.2.
    pub window: u64,
    /// The limit that the library has set on that window, in bytes; SWEETSPOT_UNLIMITED if none.
    pub limit: u64,
    /// The pacing rate that the library has set, in bit/s; SWEETSPOT_UNLIMITED if none.
    pub pacing_rate: u64,
    /// The latest round-trip time, in nanoseconds; 0 if unknown.
    pub rtt: u64,
    /// The minimum round-trip time, in nanoseconds; 0 if unknown.
    pub min_rtt: u64,
    /// The payload rate in the direction of most data, in bit/s.
    pub rate: u64,
}

impl sweetspot_status {
    pub(crate) fn new(report: &Report) -> sweetspot_status {
        let (autotuning, locked_receive_buffer) = codes::autotuning(report.autotuning);
        let reason = report.reason.map_or(0, |reason| codes::number(&codes::REASONS, reason) + 1);
        sweetspot_status {
            struct_size: size_of::<sweetspot_status>() as u32,
            activity: codes::activity(report.activity),
            is_sender: i32::from(report.side == sweetspot_socket::Side::Sender),
            phase: codes::number(&codes::PHASES, report.phase),
            reason,
            limiting_factor: codes::number(&codes::LIMITS, report.limiting_factor),
            autotuning,
            both_ends: i32::from(report.both_ends),
            locked_receive_buffer,
            received: report.received.get(),
            acked: report.acked.get(),
            window: report.window.map_or(0, |window| window.get()),
            limit: report.limit.map_or(SWEETSPOT_UNLIMITED, |limit| limit.get()),
            pacing_rate: report.pacing_rate.map_or(SWEETSPOT_UNLIMITED, |r| r.bits_per_second()),
            rtt: report.rtt.map_or(0, |rtt| rtt.as_nanos()),
            min_rtt: report.min_rtt.map_or(0, |rtt| rtt.as_nanos()),
            rate: report.rate.bits_per_second(),
        }
    }
}

/// A change that the library made to a socket, or a reason why it made none. Valid only during the observer's call.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct sweetspot_event {
    /// sizeof(sweetspot_event).
    pub struct_size: u32,
    /// The kind; see sweetspot_event_name.
    pub kind: i32,
    /// The socket's number, as returned by sweetspot_attach.
    pub socket: i64,
    /// The reason in words.
    pub why: *const c_char,
    /// The socket's state after the event.
    pub status: *const sweetspot_status,
}

/// Called for each event, on the library's thread. It must not block. It may call the library.
#[allow(non_camel_case_types)]
pub type sweetspot_observer =
    Option<unsafe extern "C" fn(event: *const sweetspot_event, context: *mut c_void)>;

/// How to size a socket. All zeros except `struct_size` means the defaults.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct sweetspot_options {
    /// sizeof(sweetspot_options).
    pub struct_size: u32,
    /// A combination of SWEETSPOT_NO_UPLOADS and SWEETSPOT_UNLOCK_BUFFERS.
    pub flags: u32,
    /// "sobas:live" (the default, if NULL), "less-than-best-effort", "drs", "heffner", "heffner:twice", "fixed:SIZE"
    /// such as "fixed:300kB", or "kernel" to watch only. Read during the call.
    pub sizing: *const c_char,
    /// Called for each event, until the socket is detached or closed; NULL for none.
    pub observer: sweetspot_observer,
    /// Passed to the observer, on the library's thread. It must stay valid until sweetspot_detach returns, which waits
    /// for a running observer.
    pub context: *mut c_void,
}

/// The program's observer and its context.
#[derive(Clone, Copy)]
pub(crate) struct CObserver {
    pub call: unsafe extern "C" fn(*const sweetspot_event, *mut c_void),
    pub context: *mut c_void,
    pub socket: i64,
}

// SAFETY: the interface documents that the context is used on another thread.
unsafe impl Send for CObserver {}
// SAFETY: as above.
unsafe impl Sync for CObserver {}

impl CObserver {
    pub fn observe(&self, event: &SocketEvent) {
        let mut why = event.why.clone().into_bytes();
        // No event text contains a NUL; one would only truncate the text.
        why.push(0);
        let status = sweetspot_status::new(&event.report);
        let event = sweetspot_event {
            struct_size: size_of::<sweetspot_event>() as u32,
            kind: codes::number(&codes::EVENTS, event.kind),
            socket: self.socket,
            why: why.as_ptr().cast(),
            status: &status,
        };
        // SAFETY: the event and everything it points to live through the call; the context is the program's.
        unsafe { (self.call)(&event, self.context) }
    }
}
