/*
 * libsweetspot: sizes the windows of a program's own TCP sockets.
 *
 * A program attaches a connected or connecting TCP socket and continues to use it. One thread of the library samples the
 * kernel's account of each socket, limits its receive window and paces what it sends. sweetspot_detach lifts every
 * limit.
 *
 * - Any thread may call any function. The library calls only observers, on a thread of its own.
 * - The program keeps its sockets, and may close one at any time. The library keeps no duplicate.
 * - After fork, a child gets SWEETSPOT_ERROR_FORKED for sockets that its parent attached, and may attach its own.
 * - Structures begin with their size. Fields are only ever added at their end.
 *
 * Generated from crates/capi by cbindgen; do not edit.
 */

#ifndef SWEETSPOT_H
#define SWEETSPOT_H

#include <stdint.h>

// The version of this interface. It changes when programs must be recompiled.
#define SWEETSPOT_ABI_VERSION 1

// Success.
#define SWEETSPOT_OK 0

// The descriptor is closed, or the connection has ended.
#define SWEETSPOT_ERROR_CLOSED -1

// The descriptor is not a TCP socket.
#define SWEETSPOT_ERROR_NOT_TCP -2

// The socket is a listener; attach the connections that it accepts.
#define SWEETSPOT_ERROR_LISTENING -3

// The socket is already attached.
#define SWEETSPOT_ERROR_ALREADY_ATTACHED -4

// No socket is attached under this number, for instance because it was detached.
#define SWEETSPOT_ERROR_NOT_ATTACHED -5

// The socket was attached by the parent process, before fork.
#define SWEETSPOT_ERROR_FORKED -6

// This system has no interface for sizing windows; the kernel sizes them.
#define SWEETSPOT_ERROR_UNSUPPORTED -7

// An argument is invalid: an unknown sizing or flag, a null pointer, or a structure that is too small.
#define SWEETSPOT_ERROR_INVALID -8

// A system call failed; errno has the reason.
#define SWEETSPOT_ERROR_SYSTEM -9

// A bug in the library.
#define SWEETSPOT_ERROR_INTERNAL -10

// The socket is not connected, so its peer cannot be invited yet.
#define SWEETSPOT_ERROR_NOT_CONNECTED -11

// The bytes are not an invitation, or have a version that this library does not support.
#define SWEETSPOT_ERROR_INVITATION -12

// The handshake is not complete.
#define SWEETSPOT_CONNECTING 0

// Data has flowed within the last two seconds.
#define SWEETSPOT_ACTIVE 1

// No data has flowed yet, or none for two seconds. The socket is not limited.
#define SWEETSPOT_IDLE 2

// The kernel does not report whether it autotunes the receive buffer (before Linux 5.16).
#define SWEETSPOT_AUTOTUNING_UNKNOWN 0

// The kernel autotunes the receive buffer.
#define SWEETSPOT_AUTOTUNING_ON 1

// The program has set SO_RCVBUF, so the kernel does not autotune it.
#define SWEETSPOT_AUTOTUNING_OFF 2

// No limit, in fields that hold limits.
#define SWEETSPOT_UNLIMITED UINT64_MAX

// The size of an invitation in bytes; see sweetspot_invite. No version of the library makes one larger than 64.
#define SWEETSPOT_INVITATION_BYTES 24

// Leave the socket's sending alone. Without this flag, it is paced when a standing queue forms (SO_MAX_PACING_RATE).
#define SWEETSPOT_NO_UPLOADS 1

// Turn the kernel's autotuning back on if the program turned it off by setting SO_RCVBUF or SO_SNDBUF (Linux 5.16). It
// stays on after the socket is detached.
#define SWEETSPOT_UNLOCK_BUFFERS 2

// The state of an attached socket when it was last sampled. Set `struct_size` before each call.
typedef struct sweetspot_status {
    // sizeof(sweetspot_status).
    uint32_t struct_size;
    // SWEETSPOT_CONNECTING, SWEETSPOT_ACTIVE or SWEETSPOT_IDLE.
    int32_t activity;
    // Whether most data is sent (1) or received (0).
    int32_t is_sender;
    // The phase of the window's controller; see sweetspot_phase_name.
    int32_t phase;
    // Why the controller entered that phase; 0 in its first phase. See sweetspot_reason_name.
    int32_t reason;
    // The limiting factor during the last seconds; see sweetspot_limit_name.
    int32_t limiting_factor;
    // Whether the kernel autotunes the receive buffer: one of SWEETSPOT_AUTOTUNING_*.
    int32_t autotuning;
    // Whether the library at the other end responds (1) or not (0); see sweetspot_invite and sweetspot_join.
    int32_t both_ends;
    // The receive buffer if it is not autotuned, in bytes; otherwise 0.
    uint64_t locked_receive_buffer;
    // Payload received, in bytes.
    uint64_t received;
    // Payload acknowledged by the peer, in bytes.
    uint64_t acked;
    // The window that the kernel advertised last, in bytes; 0 on kernels before 6.2.
    uint64_t window;
    // The limit that the library has set on that window, in bytes; SWEETSPOT_UNLIMITED if none.
    uint64_t limit;
    // The pacing rate that the library has set, in bit/s; SWEETSPOT_UNLIMITED if none.
    uint64_t pacing_rate;
    // The latest round-trip time, in nanoseconds; 0 if unknown.
    uint64_t rtt;
    // The minimum round-trip time, in nanoseconds; 0 if unknown.
    uint64_t min_rtt;
    // The payload rate in the direction of most data, in bit/s.
    uint64_t rate;
} sweetspot_status;

// A change that the library made to a socket, or a reason why it made none. Valid only during the observer's call.
typedef struct sweetspot_event {
    // sizeof(sweetspot_event).
    uint32_t struct_size;
    // The kind; see sweetspot_event_name.
    int32_t kind;
    // The socket's number, as returned by sweetspot_attach.
    int64_t socket;
    // The reason in words.
    const char *why;
    // The socket's state after the event.
    const struct sweetspot_status *status;
} sweetspot_event;

// Called for each event, on the library's thread. It must not block. It may call the library.
typedef void (*sweetspot_observer)(const struct sweetspot_event *event, void *context);

// How to size a socket. All zeros except `struct_size` means the defaults.
typedef struct sweetspot_options {
    // sizeof(sweetspot_options).
    uint32_t struct_size;
    // A combination of SWEETSPOT_NO_UPLOADS and SWEETSPOT_UNLOCK_BUFFERS.
    uint32_t flags;
    // "sobas:live" (the default, if NULL), "less-than-best-effort", "drs", "heffner", "heffner:twice", "fixed:SIZE"
    // such as "fixed:300kB", or "kernel" to watch only. Read during the call.
    const char *sizing;
    // Called for each event, until the socket is detached or closed; NULL for none.
    sweetspot_observer observer;
    // Passed to the observer, on the library's thread. It must stay valid until sweetspot_detach returns, which waits
    // for a running observer.
    void *context;
} sweetspot_options;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The interface version of the library loaded at run time.
uint32_t sweetspot_abi_version(void);

// Starts sizing the window of a TCP socket, which may still be connecting. Returns a positive number for the socket, or
// a negative error. `options` may be NULL for the defaults.
//
// The program keeps the socket and may close it at any time. Call sweetspot_detach once for each number, even then.
int64_t sweetspot_attach(int fd,
                         const struct sweetspot_options *options);

// Like sweetspot_attach, for a connected socket if the peer also uses this library. Writes an invitation of
// SWEETSPOT_INVITATION_BYTES bytes to `invitation`, a buffer of `size` bytes. Send it to the peer over your own
// protocol, where nobody else can read it; the peer calls sweetspot_join. The inviting end opens a UDP port.
int64_t sweetspot_invite(int fd,
                         const struct sweetspot_options *options,
                         uint8_t *invitation,
                         size_t size);

// Like sweetspot_attach, after the peer has called sweetspot_invite. `invitation` points to the `length` bytes received
// from the peer, which are read during the call.
int64_t sweetspot_join(int fd,
                       const struct sweetspot_options *options,
                       const uint8_t *invitation,
                       size_t length);

// Writes the socket's last sampled state to `status`. Set its struct_size before the call. Returns SWEETSPOT_OK or a
// negative error.
int sweetspot_report(int64_t socket,
                     struct sweetspot_status *status);

// Lifts every limit and detaches the socket. Returns SWEETSPOT_OK; SWEETSPOT_ERROR_CLOSED if the program has already
// closed it, so that no limit was left to lift; or another negative error. In every case the number becomes invalid.
int sweetspot_detach(int64_t socket);

// Limits the sum of the windows of all sockets of the process, in bytes; SWEETSPOT_UNLIMITED lifts that limit. Returns
// SWEETSPOT_OK or a negative error.
int sweetspot_set_memory_budget(uint64_t bytes);

// The message for an error. Do not free it.
const char *sweetspot_strerror(int64_t error);

// The name of a phase, such as "holding". Do not free it.
const char *sweetspot_phase_name(int32_t phase);

// The text of a reason; "" for 0. Do not free it.
const char *sweetspot_reason_name(int32_t reason);

// The name of a limiting factor, such as "bandwidth", as `sweetspot diagnose` prints it. Do not free it.
const char *sweetspot_limit_name(int32_t limiting_factor);

// The name of a kind of event, such as "held". Do not free it.
const char *sweetspot_event_name(int32_t kind);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SWEETSPOT_H */
