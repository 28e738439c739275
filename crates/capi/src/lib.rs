//! libsweetspot: [`sweetspot_socket`] for C. `include/sweetspot.h` is generated from this crate.
//!
//! Handles are numbers, not pointers, so using a detached handle only causes an error.

pub mod codes;
mod registry;
mod types;

use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use sweetspot_socket::{AttachError, BothEnds, Bytes, Options, SizedSocket, SocketSizing};

use codes::{
    SWEETSPOT_ERROR_INTERNAL, SWEETSPOT_ERROR_INVALID, SWEETSPOT_ERROR_INVITATION, SWEETSPOT_OK,
};
pub use types::*;

const _: () = assert!(SWEETSPOT_INVITATION_BYTES == sweetspot_socket::INVITATION_BYTES);

/// The version of this interface. It changes when programs must be recompiled.
pub const SWEETSPOT_ABI_VERSION: u32 = 1;

/// The interface version of the library loaded at run time.
#[unsafe(no_mangle)]
pub extern "C" fn sweetspot_abi_version() -> u32 {
    SWEETSPOT_ABI_VERSION
}

/// Starts sizing the window of a TCP socket, which may still be connecting. Returns a positive number for the socket, or
/// a negative error. `options` may be NULL for the defaults.
///
/// The program keeps the socket and may close it at any time. Call sweetspot_detach once for each number, even then.
#[allow(clippy::missing_safety_doc)] // the header is for C, where every pointer must be valid
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sweetspot_attach(fd: c_int, options: *const sweetspot_options) -> i64 {
    // SAFETY: the caller guarantees valid pointers.
    unsafe { attach_with(fd, options, || Ok(None)) }
}

/// Like sweetspot_attach, for a connected socket if the peer also uses this library. Writes an invitation of
/// SWEETSPOT_INVITATION_BYTES bytes to `invitation`, a buffer of `size` bytes. Send it to the peer over your own
/// protocol, where nobody else can read it; the peer calls sweetspot_join. The inviting end opens a UDP port.
#[allow(clippy::missing_safety_doc)] // as above
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sweetspot_invite(
    fd: c_int,
    options: *const sweetspot_options,
    invitation: *mut u8,
    size: usize,
) -> i64 {
    if invitation.is_null() || size < SWEETSPOT_INVITATION_BYTES {
        return i64::from(SWEETSPOT_ERROR_INVALID);
    }
    let invite = || {
        let (both_ends, made) = BothEnds::invite_descriptor(fd).map_err(|error| refused(&error))?;
        // SAFETY: the caller's buffer is large enough for the invitation and does not overlap it.
        unsafe { made.as_ptr().copy_to_nonoverlapping(invitation, made.len()) };
        Ok(Some(both_ends))
    };
    // SAFETY: the caller guarantees valid pointers.
    unsafe { attach_with(fd, options, invite) }
}

/// Like sweetspot_attach, after the peer has called sweetspot_invite. `invitation` points to the `length` bytes received
/// from the peer, which are read during the call.
#[allow(clippy::missing_safety_doc)] // as above
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sweetspot_join(
    fd: c_int,
    options: *const sweetspot_options,
    invitation: *const u8,
    length: usize,
) -> i64 {
    if invitation.is_null() || length > isize::MAX as usize {
        return i64::from(SWEETSPOT_ERROR_INVALID);
    }
    let join = || {
        // SAFETY: the caller keeps these bytes valid during the call.
        let invitation = unsafe { std::slice::from_raw_parts(invitation, length) };
        BothEnds::join(invitation).map(Some).map_err(|_| SWEETSPOT_ERROR_INVITATION)
    };
    // SAFETY: the caller guarantees valid pointers.
    unsafe { attach_with(fd, options, join) }
}

/// Attaches a socket.
///
/// # Safety
/// The same as for [`read_options`].
unsafe fn attach_with(
    fd: c_int,
    options: *const sweetspot_options,
    both_ends: impl FnOnce() -> Result<Option<BothEnds>, i32>,
) -> i64 {
    // SAFETY: the caller guarantees valid pointers.
    let read = || unsafe { read_options(options) };
    let attached = guarded(|| {
        let (mut options, observer) = read().ok_or(SWEETSPOT_ERROR_INVALID)?;
        options.both_ends = both_ends()?;
        attach(fd, options, observer)
    });
    attached.unwrap_or(Err(SWEETSPOT_ERROR_INTERNAL)).unwrap_or_else(i64::from)
}

/// Writes the socket's last sampled state to `status`. Set its struct_size before the call. Returns SWEETSPOT_OK or a
/// negative error.
#[allow(clippy::missing_safety_doc)] // as above
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sweetspot_report(socket: i64, status: *mut sweetspot_status) -> c_int {
    if status.is_null() {
        return SWEETSPOT_ERROR_INVALID;
    }
    // SAFETY: every version of the structure begins with its size.
    let size = unsafe { status.cast::<u32>().read_unaligned() };
    if (size as usize) < size_of::<sweetspot_status>() {
        return SWEETSPOT_ERROR_INVALID;
    }
    let report = || registry::with(socket, |sized| sized.report().map_err(codes::socket_error))?;
    match guarded(report).unwrap_or(Err(SWEETSPOT_ERROR_INTERNAL)) {
        Ok(report) => {
            let new = sweetspot_status { struct_size: size, ..sweetspot_status::new(&report) };
            // SAFETY: the size check above shows that the caller's structure is at least this large.
            unsafe { status.write_unaligned(new) };
            SWEETSPOT_OK
        }
        Err(error) => error,
    }
}

/// Lifts every limit and detaches the socket. Returns SWEETSPOT_OK; SWEETSPOT_ERROR_CLOSED if the program has already
/// closed it, so that no limit was left to lift; or another negative error. In every case the number becomes invalid.
#[unsafe(no_mangle)]
pub extern "C" fn sweetspot_detach(socket: i64) -> c_int {
    let detach = || registry::remove(socket)?.detach().map_err(codes::socket_error);
    match guarded(detach).unwrap_or(Err(SWEETSPOT_ERROR_INTERNAL)) {
        Ok(()) => SWEETSPOT_OK,
        Err(error) => error,
    }
}

/// Limits the sum of the windows of all sockets of the process, in bytes; SWEETSPOT_UNLIMITED lifts that limit. Returns
/// SWEETSPOT_OK or a negative error.
#[unsafe(no_mangle)]
pub extern "C" fn sweetspot_set_memory_budget(bytes: u64) -> c_int {
    let budget = Some(bytes).filter(|bytes| *bytes != SWEETSPOT_UNLIMITED).map(Bytes::new);
    match guarded(|| sweetspot_socket::set_memory_budget(budget)) {
        Some(Ok(())) => SWEETSPOT_OK,
        Some(Err(error)) => codes::attach_error(&error).0,
        None => SWEETSPOT_ERROR_INTERNAL,
    }
}

/// The message for an error. Do not free it.
#[unsafe(no_mangle)]
pub extern "C" fn sweetspot_strerror(error: i64) -> *const c_char {
    words(codes::sentence(i32::try_from(error).unwrap_or(i32::MIN)))
}

/// The name of a phase, such as "holding". Do not free it.
#[unsafe(no_mangle)]
pub extern "C" fn sweetspot_phase_name(phase: i32) -> *const c_char {
    words(codes::name(&codes::PHASES, phase))
}

/// The text of a reason; "" for 0. Do not free it.
#[unsafe(no_mangle)]
pub extern "C" fn sweetspot_reason_name(reason: i32) -> *const c_char {
    words(if reason == 0 { "\0" } else { codes::name(&codes::REASONS, reason.saturating_sub(1)) })
}

/// The name of a limiting factor, such as "bandwidth", as `sweetspot diagnose` prints it. Do not free it.
#[unsafe(no_mangle)]
pub extern "C" fn sweetspot_limit_name(limiting_factor: i32) -> *const c_char {
    words(codes::name(&codes::LIMITS, limiting_factor))
}

/// The name of a kind of event, such as "held". Do not free it.
#[unsafe(no_mangle)]
pub extern "C" fn sweetspot_event_name(kind: i32) -> *const c_char {
    words(codes::name(&codes::EVENTS, kind))
}

fn words(text: &'static str) -> *const c_char {
    text.as_ptr().cast()
}

/// Runs `act`; `None` if it panics, because a panic must not unwind into C.
fn guarded<T>(act: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(act)).ok()
}

fn attach(fd: c_int, mut options: Options, observer: Option<CObserver>) -> Result<i64, i32> {
    let number = registry::next()?;
    options.observer = observer.map(|observer| {
        let observer = CObserver { socket: number, ..observer };
        Arc::new(move |event: &_| observer.observe(event)) as _
    });
    match SizedSocket::attach_descriptor(fd, options) {
        Ok(sized) => {
            registry::insert(number, sized);
            Ok(number)
        }
        Err(error) => Err(refused(&error)),
    }
}

/// The number of an error; sets errno if the kernel did.
fn refused(error: &AttachError) -> i32 {
    let (error, errno) = codes::attach_error(error);
    if let Some(errno) = errno {
        // SAFETY: the location of this thread's errno is always valid.
        unsafe { *libc::__errno_location() = errno };
    }
    error
}

/// Reads the program's options; `None` if they are invalid.
///
/// # Safety
/// `options` is NULL or points to as many bytes as its first field says, and the pointers in it are valid.
unsafe fn read_options(options: *const sweetspot_options) -> Option<(Options, Option<CObserver>)> {
    if options.is_null() {
        return Some((Options::default(), None));
    }
    // SAFETY: every version of the structure begins with its size.
    let size = unsafe { options.cast::<u32>().read_unaligned() };
    if (size as usize) < size_of::<sweetspot_options>() {
        return None;
    }
    // SAFETY: the size check above shows that the structure is at least this large.
    let options = unsafe { options.read_unaligned() };
    if options.flags & !FLAGS != 0 {
        return None;
    }
    let sizing = if options.sizing.is_null() {
        SocketSizing::default()
    } else {
        // SAFETY: the caller's string is NUL-terminated.
        unsafe { CStr::from_ptr(options.sizing) }.to_str().ok()?.parse().ok()?
    };
    let context = options.context;
    let observer = options.observer.map(|call| CObserver { call, context, socket: 0 });
    let uploads = options.flags & SWEETSPOT_NO_UPLOADS == 0;
    let unlock_buffers = options.flags & SWEETSPOT_UNLOCK_BUFFERS != 0;
    let plain = Options::default();
    Some((Options { sizing, uploads, unlock_buffers, ..plain }, observer))
}
