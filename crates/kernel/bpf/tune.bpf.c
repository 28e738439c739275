/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Watches and limits the TCP connections of a cgroup, for `sweetspot tune`. User space decides; these programs find bulk
 * transfers, report them, and enforce the decisions. No program drops a packet or rejects a call.
 *
 * A limit is enforced only while user space renews its lease. Once the lease has ended, for whatever reason, each
 * connection is restored at its next segment. */

#include "kernel.h"

/* The inode of the tuner's PID namespace, set by the loader. */
volatile const __u64 pid_namespace = 0;

/* User space's settings for all programs. One entry. */
struct settings {
	__u64 lease_ends;      /* ns on CLOCK_MONOTONIC */
	__u64 generation;      /* counts changes to `commands` */
	__u64 bulk_bytes;      /* a transfer is bulk once it has moved this many bytes ... */
	__u64 bulk_within;     /* ... within this time, ns */
	__u64 first_interval;  /* between two samples, unless a command changes it, ns */
	__u64 flags;           /* those below */
};

/* Uploads are of interest. Another flag, DRY_RUN, is for other tuners. */
#define UPLOADS 1

/* User space's decision about a connection, by its cookie. */
struct command {
	__u64 limit;     /* of the receive window, bytes; 0: no limit */
	__u64 pace;      /* pacing rate, bytes/s; 0: no limit */
	__u64 interval;  /* between two samples, ns */
	__u64 left;      /* whether the connection is left alone */
	char congestion[TCP_CA_NAME_MAX];  /* the congestion control; empty: keeps its own */
};

/* The state of a connection, in the socket's storage. */
struct connection {
	__u64 cookie;
	__u64 epoch;        /* when the current byte count began */
	__u64 epoch_bytes;  /* bytes received plus acknowledged at that time */
	__u64 next_sample;
	__u64 generation;   /* of the last command read */
	__u64 limit;
	__u64 interval;
	__u64 pace_before;  /* the program's own pacing rate, while ours is set */
	__u64 jump;         /* its initial window, bytes, if its path was saved */
	__u64 saved_pace;   /* the saved pacing rate of its path, while that is trusted; bytes/s */
	char own_congestion[TCP_CA_NAME_MAX];  /* its original congestion control, while it has ours */
	__u32 own_clamp;    /* the program's own TCP_WINDOW_CLAMP; 0: none seen */
	__u32 found_clamp;  /* the clamp that ours replaced: the kernel's, or one set unseen by the program */
	__u32 set_clamp;    /* the clamp that we set */
	__u32 pid;          /* the process that first used it, by its ID in `pid_namespace`; 0: not seen, or without an ID there */
	__u8 bulk;
	__u8 clamped;
	__u8 paced;
	__u8 left;
	__u8 asked;         /* whether its path was looked up */
	__u8 resuming;      /* the phase of its upload over a saved path */
	__u8 took;          /* whether it alone uses that path's parameters */
	__u8 used;          /* whether its process was noted */
	__u8 congestion;    /* the origin of its congestion control */
};

/* The origin of a connection's congestion control: the host's, ours, the host's because the kernel rejected ours, or the
 * program's own choice. */
enum { CONGESTION_OF_HOST = 0, CONGESTION_OURS, CONGESTION_REFUSED, CONGESTION_OF_PROGRAM };

/* A host or network: an IPv6 address, or an IPv4-mapped one. */
struct destination {
	__u32 prefix_bits;
	__u32 address[4];
};

/* The phases of RFC 9959. The first, Reconnaissance, is the handshake: a program may set a connection's congestion window
 * only before its first byte (TCP_BPF_IW). */
enum { RESUMING_NO = 0, RESUMING_UNVALIDATED, RESUMING_VALIDATING, RESUMING_RETREAT, RESUMING_BESIDE_ANOTHER };

/* The saved parameters of the path to a destination. */
struct path {
	__u64 window;          /* the limit in force until the end of the last transfer */
	__u64 minimum_rtt_us;
	__u64 taken;           /* whether a connection already uses it */
};

/* Prefix lengths of a network (sweetspot_control::network). */
#define NETWORK_BITS_V4 (96 + 24)
#define NETWORK_BITS_V6 48

/* A lease that ended this long ago counts as abandoned: new connections are not followed. */
#define ABANDONED_NS (10 * 1000000000ULL)

enum { RECORD_BULK = 1, RECORD_SAMPLE = 2, RECORD_OVER = 3 };

/* A report to user space, decoded in src/record.rs in this order. */
struct record {
	__u64 kind;
	__u64 cookie;
	__u64 time;
	__u64 received;
	__u64 acked;
	__u64 unread;
	__u64 receiver_rtt_us;
	__u64 minimum_rtt_us;
	__u64 smoothed_rtt_us;
	__u64 out_of_order;
	__u64 advertised;
	__u64 clamp;
	__u64 advertised_mss;
	__u64 mss;
	__u64 delivered;
	__u64 packets_out;
	__u64 retransmitted_out;
	__u64 sacked_out;
	__u64 lost_out;
	__u64 rate_delivered;
	__u64 rate_interval_us;
	__u64 app_limited;
	__u64 max_pacing_rate;
	__u64 own_clamp;
	__u64 limit;
	__u64 saved_pace;
	__u64 uid;
	__u64 inode;
	__u64 pid;
	__u64 congestion;
	__u64 state;
	__u64 family;
	__u64 local_port;
	__u64 remote_port;
	__u64 local[2];
	__u64 remote[2];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct settings);
} settings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, struct command);
} commands SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
	__type(key, int);
	__type(value, struct connection);
} connections SEC(".maps");

/* Starts and ends of bulk transfers, which wake user space up. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} announcements SEC(".maps");

/* Samples: user space fetches them periodically. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} samples SEC(".maps");

/* Saved parameters for downloads and for uploads; the latter per host only, because each host of a network has its own link. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 1024);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct destination);
	__type(value, struct path);
} paths SEC(".maps"), upload_paths SEC(".maps");

/* A connection claims its path's saved parameters once it has received an initial window (RFC 6928), so that one with only
 * a small response does not take them from another. */
#define RESUME_BYTES 14600
#define INITIAL_WINDOW 10

#define common(tp) (tp)->inet_conn.icsk_inet.sk.__sk_common

INLINE struct settings *current_settings(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&settings, &zero);
}

INLINE __u64 address_part(struct in6_addr *address, int part)
{
	return (__u64)address->in6_u.u6_addr32[2 * part + 1] << 32 | address->in6_u.u6_addr32[2 * part];
}

/* Sends a record to user space; returns whether the ring had space for it. */
INLINE int tell(struct tcp_sock *tp, struct connection *c, __u64 kind, __u64 now)
{
	struct sock *sk = &tp->inet_conn.icsk_inet.sk;
	struct record *r;
	__u64 family;

	if (kind == RECORD_SAMPLE)
		r = bpf_ringbuf_reserve(&samples, sizeof(*r), 0);
	else
		r = bpf_ringbuf_reserve(&announcements, sizeof(*r), 0);
	if (!r)
		return 0;
	r->kind = kind;
	r->cookie = c->cookie;
	r->time = now;
	r->received = tp->bytes_received;
	r->acked = tp->bytes_acked;
	r->unread = (__u32)(tp->rcv_nxt - tp->copied_seq);
	r->receiver_rtt_us = tp->rcv_rtt_est.rtt_us >> 3;
	r->minimum_rtt_us = tp->rtt_min.s[0].v;
	r->smoothed_rtt_us = tp->srtt_us >> 3;
	r->out_of_order = tp->rcv_ooopack;
	r->advertised = tp->rcv_wnd;
	r->clamp = tp->window_clamp;
	r->advertised_mss = tp->advmss;
	r->mss = tp->mss_cache;
	r->delivered = tp->delivered;
	r->packets_out = tp->packets_out;
	r->retransmitted_out = tp->retrans_out;
	r->sacked_out = tp->sacked_out;
	r->lost_out = tp->lost_out;
	r->rate_delivered = tp->rate_delivered;
	r->rate_interval_us = tp->rate_interval_us;
	r->app_limited = bitfield(tp, rate_app_limited);
	r->max_pacing_rate = sk->sk_max_pacing_rate;
	r->own_clamp = c->own_clamp;
	r->limit = c->limit;
	r->saved_pace = c->took ? c->saved_pace : 0;
	r->uid = sk->sk_uid.val;
	r->inode = 0;
	r->pid = c->pid;
	r->congestion = c->congestion;
	if (kind == RECORD_BULK) {
		struct socket *socket = sk->sk_socket;

		/* A connection that has not been accepted yet has none. */
		if (socket) {
			struct file *file = socket->file;

			if (file)
				r->inode = file->f_inode->i_ino;
		}
	}
	r->state = sk->__sk_common.skc_state;
	family = sk->__sk_common.skc_family;
	r->family = family;
	r->local_port = sk->__sk_common.skc_num;
	r->remote_port = __builtin_bswap16(sk->__sk_common.skc_dport);
	if (family == AF_INET6) {
		r->local[0] = address_part(&sk->__sk_common.skc_v6_rcv_saddr, 0);
		r->local[1] = address_part(&sk->__sk_common.skc_v6_rcv_saddr, 1);
		r->remote[0] = address_part(&sk->__sk_common.skc_v6_daddr, 0);
		r->remote[1] = address_part(&sk->__sk_common.skc_v6_daddr, 1);
	} else {
		r->local[0] = sk->__sk_common.skc_rcv_saddr;
		r->local[1] = 0;
		r->remote[0] = sk->__sk_common.skc_daddr;
		r->remote[1] = 0;
	}
	bpf_ringbuf_submit(r, kind == RECORD_SAMPLE ? BPF_RB_NO_WAKEUP : BPF_RB_FORCE_WAKEUP);
	return 1;
}

/* The clamp that the kernel itself would set: the part of the buffer usable as window (tcp_win_from_space, since kernel
 * commit dfa2f0483360, Linux 6.6). On older kernels, a clamp without effect. */
INLINE __u32 natural_clamp(struct tcp_sock *tp)
{
	if (!field_exists(tp->scaling_ratio))
		return 0x7fffffff;
	return (__u64)tp->inet_conn.icsk_inet.sk.sk_rcvbuf * tp->scaling_ratio >> 8;
}

/* Notes a clamp that we did not set; the kernel does not report its origin. Each new clamp by the kernel overwrites the
 * one before, so the last clamp seen here is the one that the connection would have without us. */
INLINE void find_clamp(struct tcp_sock *tp, struct connection *c)
{
	if (!c->clamped || tp->window_clamp != c->set_clamp)
		c->found_clamp = tp->window_clamp;
}

/* The clamp that the connection would have without us. */
INLINE __u32 unlimited_clamp(struct connection *c)
{
	return c->own_clamp ? c->own_clamp : c->found_clamp;
}

INLINE void set_clamp(void *socket, struct tcp_sock *tp, struct connection *c, __u32 clamp)
{
	int value = clamp;

	bpf_setsockopt(socket, IPPROTO_TCP, TCP_WINDOW_CLAMP, &value, sizeof(value));
	/* The kernel sets no clamp below half of its minimum buffer, so read it back. */
	c->set_clamp = tp->window_clamp;
}

/* Sets the limit again if it was overwritten: by the kernel, when it grows the buffer or changes the scaling ratio
 * (kernel commits 05f76b2d634e, a2cbb1603943), or by the program. The program's own clamp is never loosened. */
INLINE void hold(void *socket, struct tcp_sock *tp, struct connection *c)
{
	__u32 limit = c->limit, most;

	/* Nothing to do if the kernel's own clamp is already within the limit. */
	if (!limit || (!c->clamped && tp->window_clamp <= limit))
		return;
	find_clamp(tp, c);
	most = unlimited_clamp(c);
	c->clamped = limit < most;
	if (limit > most)
		limit = most;
	if (tp->window_clamp != limit)
		set_clamp(socket, tp, c, limit);
}

INLINE void lift(void *socket, struct tcp_sock *tp, struct connection *c)
{
	if (!c->clamped)
		return;
	find_clamp(tp, c);
	c->clamped = 0;
	set_clamp(socket, tp, c, unlimited_clamp(c));
}

INLINE void set_pace(void *socket, struct tcp_sock *tp, struct connection *c, __u64 pace)
{
	__u32 value;

	if (!pace && !c->paced)
		return;
	if (!c->paced)
		c->pace_before = tp->inet_conn.icsk_inet.sk.sk_max_pacing_rate;
	c->paced = pace != 0;
	if (!pace || pace > c->pace_before)
		pace = c->pace_before;
	/* BPF programs set it in 32 bits; all ones mean no limit. */
	value = pace > 0xffffffff ? 0xffffffff : pace;
	bpf_setsockopt(socket, SOL_SOCKET, SO_MAX_PACING_RATE, &value, sizeof(value));
}

/* Sets the connection's congestion control, unless its program has chosen one. */
INLINE void choose_congestion(void *socket, struct connection *c, const char *name)
{
	if (c->congestion != CONGESTION_OF_HOST)
		return;
	c->congestion = CONGESTION_REFUSED;
	if (bpf_getsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, c->own_congestion, TCP_CA_NAME_MAX))
		return;
	if (!bpf_setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, (void *)name, TCP_CA_NAME_MAX))
		c->congestion = CONGESTION_OURS;
}

INLINE void restore_congestion(void *socket, struct connection *c)
{
	if (c->congestion == CONGESTION_OURS)
		bpf_setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, c->own_congestion, TCP_CA_NAME_MAX);
	if (c->congestion != CONGESTION_OF_PROGRAM)
		c->congestion = CONGESTION_OF_HOST;
}

INLINE void restore(void *socket, struct tcp_sock *tp, struct connection *c)
{
	lift(socket, tp, c);
	set_pace(socket, tp, c, 0);
	restore_congestion(socket, c);
	c->limit = 0;
	c->saved_pace = 0;
	c->resuming = RESUMING_NO;
	/* Makes the command be read again if the lease is renewed. */
	c->generation = 0;
}

INLINE void read_command(void *socket, struct tcp_sock *tp, struct connection *c, __u64 generation)
{
	struct command *command = bpf_map_lookup_elem(&commands, &c->cookie);

	c->generation = generation;
	if (!command)
		return;
	c->limit = command->limit;
	c->interval = command->interval;
	c->left = command->left != 0;
	if (!c->limit)
		lift(socket, tp, c);
	if (!c->resuming)
		set_pace(socket, tp, c, command->pace);
	if (command->congestion[0])
		choose_congestion(socket, c, command->congestion);
	else
		restore_congestion(socket, c);
}

/* Whether a transfer has become bulk, given the `bytes` that it has moved. */
INLINE int is_bulk(struct connection *c, struct settings *s, __u64 bytes)
{
	__u64 now;

	if (bytes - c->epoch_bytes < s->bulk_bytes)
		return 0;
	now = bpf_ktime_get_coarse_ns();
	if (now - c->epoch <= s->bulk_within)
		return 1;
	c->epoch = now;
	c->epoch_bytes = bytes;
	return 0;
}

/* Requests callbacks for each segment or once per RTT. A receiver has no other event than its segments, and the queue of
 * a sender makes its RTTs too long for following it. For a connection that only sends and is not sampled, a callback per
 * RTT is enough to see whether it has started to receive. */
INLINE void ask_for_callbacks(struct bpf_sock_ops *ctx, struct connection *c, int each_segment)
{
	int flags = BPF_SOCK_OPS_STATE_CB_FLAG;

	if (c->resuming)
		flags |= BPF_SOCK_OPS_RETRANS_CB_FLAG;
	if (!c->left)
		flags |= each_segment ? BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG : BPF_SOCK_OPS_RTT_CB_FLAG;
	bpf_sock_ops_cb_flags_set(ctx, flags);
}

/* The lookup key of a connection's peer. */
INLINE void peer(struct tcp_sock *tp, struct destination *key)
{
	key->prefix_bits = 128;
	if (common(tp).skc_family == AF_INET6) {
		key->address[0] = common(tp).skc_v6_daddr.in6_u.u6_addr32[0];
		key->address[1] = common(tp).skc_v6_daddr.in6_u.u6_addr32[1];
		key->address[2] = common(tp).skc_v6_daddr.in6_u.u6_addr32[2];
		key->address[3] = common(tp).skc_v6_daddr.in6_u.u6_addr32[3];
	} else {
		key->address[0] = 0;
		key->address[1] = 0;
		key->address[2] = __builtin_bswap32(0xffff);
		key->address[3] = common(tp).skc_daddr;
	}
}

/* Whether a connection's RTT matches the saved path's: more than half of the saved one, and no more than ten times it
 * (RFC 9959, section 4.2.1). */
INLINE int is_same(struct tcp_sock *tp, struct path *path)
{
	__u64 rtt = tp->rtt_min.s[0].v;

	return rtt > path->minimum_rtt_us / 2 && rtt <= path->minimum_rtt_us * 10;
}

/* Looks up the saved parameters of a connection's path, and of its network; returns whether the connection may use them. A
 * host's parameters take precedence over its network's. Only one connection per network may use them at a time: saved
 * parameters are for one connection only (RFC 9959, section 4). */
INLINE int recall(struct tcp_sock *tp, struct path **path, struct path **network)
{
	struct destination key;
	int is_v4;

	peer(tp, &key);
	*path = bpf_map_lookup_elem(&paths, &key);
	if (!*path || (*path)->taken)
		return 0;
	/* Also true for an IPv4-mapped address on an IPv6 socket. */
	is_v4 = !key.address[0] && !key.address[1] && key.address[2] == __builtin_bswap32(0xffff);
	key.prefix_bits = is_v4 ? NETWORK_BITS_V4 : NETWORK_BITS_V6;
	*network = bpf_map_lookup_elem(&paths, &key);
	if (*network && (*network)->taken)
		return 0;
	return is_same(tp, *path);
}

/* Limits a connection before its first byte to its path's saved window. Because this is only a limit, several connections
 * may begin with it. */
INLINE void resume(struct tcp_sock *tp, struct connection *c)
{
	struct path *path, *network;

	if (recall(tp, &path, &network))
		c->limit = path->window;
}

/* Claims the path's saved parameters for a connection that has received more than a small response. If another connection
 * has already claimed them, this one continues without. */
INLINE void take(void *socket, struct tcp_sock *tp, struct connection *c, struct settings *s)
{
	struct path *path, *network;

	c->asked = 1;
	if (!recall(tp, &path, &network)) {
		c->limit = 0;
		lift(socket, tp, c);
		return;
	}
	path->taken = 1;
	if (network)
		network->taken = 1;
	c->limit = path->window;
	/* There is no command yet. */
	c->generation = s->generation;
}

/* Lets an upload over a saved path start with half of the saved window, paced over one RTT, and then at the saved rate
 * (RFC 9959: Unvalidated), if it is the first with more than an initial window to send. */
INLINE void resume_upload(void *socket, struct tcp_sock *tp, struct connection *c)
{
	struct destination key;
	struct path *path;
	__u64 mss = tp->mss_cache, rtt = tp->rtt_min.s[0].v;
	int packets;

	peer(tp, &key);
	path = bpf_map_lookup_elem(&upload_paths, &key);
	if (!path || path->taken || !is_same(tp, path) || !mss || !rtt || !path->minimum_rtt_us)
		return;
	packets = path->window / 2 / mss;
	if (packets <= INITIAL_WINDOW)
		return;
	if (bpf_setsockopt(socket, IPPROTO_TCP, TCP_BPF_IW, &packets, sizeof(packets)))
		return;
	c->jump = packets * mss;
	c->saved_pace = path->window * 1000000 / path->minimum_rtt_us;
	c->resuming = RESUMING_UNVALIDATED;
	set_pace(socket, tp, c, c->jump * 1000000 / rtt);
}

/* Called when an upload has more than an initial window to send: claims the saved path until the upload ends. If another
 * upload has already claimed the path, this one continues without. */
INLINE void claim(struct bpf_sock_ops *ctx, struct tcp_sock *tp, struct connection *c)
{
	struct destination key;
	struct path *path;
	int packets = INITIAL_WINDOW;

	peer(tp, &key);
	path = bpf_map_lookup_elem(&upload_paths, &key);
	if (path && !path->taken && !c->bulk) {
		path->taken = 1;
		c->took = 1;
		return;
	}
	c->saved_pace = 0;
	/* After the first byte the window can no longer be reduced: it is still sent over one RTT. */
	c->resuming = RESUMING_BESIDE_ANOTHER;
	if (!tp->data_segs_out && !bpf_setsockopt(ctx, IPPROTO_TCP, TCP_BPF_IW, &packets, sizeof(packets)))
		c->jump = 0;
}

/* Follows an upload over a saved path as its first bytes are sent and acknowledged (RFC 9959: Validating). */
INLINE void validate(struct bpf_sock_ops *ctx, struct tcp_sock *tp, struct connection *c)
{
	__u64 acked = tp->bytes_acked;
	__u32 waiting = tp->write_seq - tp->snd_una;

	if (c->resuming == RESUMING_UNVALIDATED && !c->took && waiting > RESUME_BYTES)
		claim(ctx, tp, c);
	/* The SYN counts as one byte. */
	if (c->resuming == RESUMING_UNVALIDATED && c->took && acked > 1) {
		c->resuming = RESUMING_VALIDATING;
		set_pace(ctx, tp, c, c->saved_pace);
	}
	if (c->resuming == RESUMING_RETREAT) {
		if (bitfield(&tp->inet_conn, icsk_ca_state) != TCP_CA_Open)
			return;
	} else if (c->jump && acked <= c->jump) {
		return;
	}
	c->resuming = RESUMING_NO;
	/* User space's decision applies again. */
	c->generation = 0;
	if (!c->took)
		c->saved_pace = 0;
	if (!c->saved_pace)
		set_pace(ctx, tp, c, 0);
	ask_for_callbacks(ctx, c, 1);
}

/* Handles a loss before the whole first window is acknowledged: the path has changed. Until the loss is repaired, the rate
 * is half of the measured delivery rate, but at least an initial window per RTT, and the saved parameters are deleted
 * (RFC 9959: Safe Retreat; the kernel's congestion control also reduces its window). */
INLINE void retreat(struct bpf_sock_ops *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	struct destination key;
	struct connection *c;
	struct tcp_sock *tp;
	__u64 rtt, pace, delivered, least;

	if (!sk)
		return;
	c = bpf_sk_storage_get(&connections, sk, 0, 0);
	tp = bpf_skc_to_tcp_sock(sk);
	if (!c || !tp)
		return;
	if (c->resuming != RESUMING_UNVALIDATED && c->resuming != RESUMING_VALIDATING)
		return;
	rtt = tp->srtt_us >> 3;
	if (!rtt)
		rtt = 1;
	/* The rate sent, if nothing has been delivered yet. */
	pace = c->jump * 1000000 / rtt;
	if (tp->rate_interval_us) {
		delivered = (__u64)tp->rate_delivered * tp->mss_cache * 1000000 / tp->rate_interval_us;
		if (pace > delivered)
			pace = delivered;
	}
	pace /= 2;
	least = (__u64)INITIAL_WINDOW * tp->mss_cache * 1000000 / rtt;
	if (pace < least)
		pace = least;
	c->resuming = RESUMING_RETREAT;
	c->saved_pace = 0;
	set_pace(ctx, tp, c, pace);
	if (c->took) {
		peer(tp, &key);
		bpf_map_delete_elem(&upload_paths, &key);
	}
}

/* The ID of the current process in the tuner's PID namespace; 0 if it has none there. */
INLINE __u32 current_pid(void)
{
	struct pid *pid = bpf_get_current_task_btf()->signal->pids[PIDTYPE_TGID];
	const char *numbers = (const char *)&pid->numbers;
	struct upid id;
	__u32 inode, level;

	/* One entry per namespace, from the initial one to the process's own. The verifier does not know the array's length. */
	for (level = 0; level <= MAX_PID_NS_LEVEL && level <= pid->level; level++) {
		if (bpf_probe_read_kernel(&id, sizeof(id), numbers + level * sizeof(id)) ||
		    bpf_probe_read_kernel(&inode, sizeof(inode), &id.ns->ns.inum))
			return 0;
		if (inode == pid_namespace)
			return id.nr;
	}
	return 0;
}

/* Notes the process that uses a connection. A system call owns the socket while it runs, and segments that arrive in the
 * meantime wait. So while the socket is owned, this program runs in the context of that process (include/net/sock.h,
 * lock_sock). */
INLINE void note_user(struct tcp_sock *tp, struct connection *c)
{
	if (!c->used && tp->inet_conn.icsk_inet.sk.sk_lock.owned) {
		c->used = 1;
		c->pid = current_pid();
	}
}

INLINE void attend(struct bpf_sock_ops *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	struct connection *c;
	struct settings *s;
	struct tcp_sock *tp;
	__u64 received, now;

	if (!sk)
		return;
	c = bpf_sk_storage_get(&connections, sk, 0, 0);
	s = current_settings();
	if (!c || !s)
		return;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return;
	received = tp->bytes_received;
	if (c->resuming)
		validate(ctx, tp, c);
	if (!c->bulk) {
		__u64 acked = tp->bytes_acked;

		note_user(tp, c);
		if (!c->asked && received >= RESUME_BYTES)
			take(ctx, tp, c, s);
		if (c->limit || c->paced) {
			if (bpf_ktime_get_coarse_ns() < s->lease_ends)
				hold(ctx, tp, c);
			else
				restore(ctx, tp, c);
		}
		if (!is_bulk(c, s, received + acked))
			return;
	}
	now = bpf_ktime_get_ns();
	if (now >= s->lease_ends) {
		/* Another tuner may follow this connection by now: the callback flags are for it to set. */
		restore(ctx, tp, c);
		return;
	}
	if (!c->bulk) {
		int sends = tp->bytes_acked > received;

		if (sends)
			ask_for_callbacks(ctx, c, s->flags & UPLOADS);
		else if (ctx->op == BPF_SOCK_OPS_RTT_CB)
			ask_for_callbacks(ctx, c, 1);
		if (sends && !(s->flags & UPLOADS))
			return;
		c->interval = s->first_interval;
		c->next_sample = now + c->interval;
		c->bulk = tell(tp, c, RECORD_BULK, now);
		return;
	}
	if (c->generation != s->generation) {
		read_command(ctx, tp, c, s->generation);
		if (c->left) {
			restore(ctx, tp, c);
			ask_for_callbacks(ctx, c, 0);
			return;
		}
	}
	hold(ctx, tp, c);
	if (now >= c->next_sample && tell(tp, c, RECORD_SAMPLE, now))
		c->next_sample = now + c->interval;
}

INLINE void begin(struct bpf_sock_ops *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	struct connection *c;
	struct settings *s;
	struct tcp_sock *tp;

	if (!sk)
		return;
	c = bpf_sk_storage_get(&connections, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!c)
		return;
	c->cookie = bpf_get_socket_cookie(ctx);
	c->epoch = bpf_ktime_get_coarse_ns();
	s = current_settings();
	tp = bpf_skc_to_tcp_sock(sk);
	if (!s || !tp)
		return;
	if (c->epoch >= s->lease_ends) {
		/* A tuner that was only paused renews its lease. */
		if (c->epoch - s->lease_ends < ABANDONED_NS)
			ask_for_callbacks(ctx, c, 1);
		return;
	}
	if (s->flags & UPLOADS)
		resume_upload(ctx, tp, c);
	ask_for_callbacks(ctx, c, 1);
	/* The handshake has measured the RTT. The kernel overwrites a clamp set now at the first full segments, so it is set
	 * again at each segment. */
	resume(tp, c);
	hold(ctx, tp, c);
}

/* Releases the path of an upload that never became bulk; user space gets no report of its end. */
INLINE void give_back(struct tcp_sock *tp, struct connection *c)
{
	struct destination key;
	struct path *path;

	if (!c->took)
		return;
	peer(tp, &key);
	path = bpf_map_lookup_elem(&upload_paths, &key);
	if (path)
		path->taken = 0;
}

INLINE void end(struct bpf_sock_ops *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	struct connection *c;
	struct tcp_sock *tp;

	if (ctx->args[1] != TCP_CLOSE || !sk)
		return;
	c = bpf_sk_storage_get(&connections, sk, 0, 0);
	tp = bpf_skc_to_tcp_sock(sk);
	if (!c || !tp)
		return;
	if (!c->bulk) {
		give_back(tp, c);
		return;
	}
	bpf_map_delete_elem(&commands, &c->cookie);
	tell(tp, c, RECORD_OVER, bpf_ktime_get_ns());
}

SEC("sockops")
int sweetspot_ops(struct bpf_sock_ops *ctx)
{
	switch (ctx->op) {
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		begin(ctx);
		break;
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
	case BPF_SOCK_OPS_RTT_CB:
		attend(ctx);
		break;
	case BPF_SOCK_OPS_RETRANS_CB:
		retreat(ctx);
		break;
	case BPF_SOCK_OPS_STATE_CB:
		end(ctx);
		break;
	}
	return 1;
}

/* Notes the clamp and the congestion control that a program sets. */
SEC("cgroup/setsockopt")
int sweetspot_set(struct bpf_sockopt *ctx)
{
	int *value = ctx->optval;
	struct connection *c;

	/* An option longer than a page passes unchanged only with optlen 0. */
	if (ctx->optlen > 4096)
		ctx->optlen = 0;
	if (ctx->level != IPPROTO_TCP || !ctx->sk)
		return 1;
	if (ctx->optname != TCP_WINDOW_CLAMP && ctx->optname != TCP_CONGESTION)
		return 1;
	c = bpf_sk_storage_get(&connections, ctx->sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!c)
		return 1;
	if (ctx->optname == TCP_CONGESTION)
		c->congestion = CONGESTION_OF_PROGRAM;
	else if ((void *)(value + 1) <= ctx->optval_end && *value > 0)
		c->own_clamp = *value;
	return 1;
}

/* The iterator's current connection; NULL at the end, or if it is not a full TCP socket. */
INLINE struct tcp_sock *visited(struct bpf_iter__tcp *ctx)
{
	struct sock_common *sk = ctx->sk_common;

	return sk ? bpf_skc_to_tcp_sock(sk) : NULL;
}

/* Restores every connection that is still limited, including idle ones. */
SEC("iter/tcp")
int sweetspot_lift(struct bpf_iter__tcp *ctx)
{
	struct tcp_sock *tp = visited(ctx);
	struct connection *c;

	if (!tp)
		return 0;
	c = bpf_sk_storage_get(&connections, tp, 0, 0);
	if (c)
		restore(tp, tp, c);
	return 0;
}

/* Finds existing connections. Resets those already known, limited or left alone, so that all of them are checked for bulk
 * transfers from now on. Before Linux 6.12 (TCP_BPF_SOCK_OPS_CB_FLAGS) an iterator cannot request a connection's events,
 * so this writes a byte for each connection without events. */
SEC("iter/tcp")
int sweetspot_find(struct bpf_iter__tcp *ctx)
{
	struct tcp_sock *tp = visited(ctx);
	struct connection *c;
	int state, flags = BPF_SOCK_OPS_STATE_CB_FLAG | BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG;
	int unheard;
	char mark = '!';

	if (!tp)
		return 0;
	state = common(tp).skc_state;
	if (state != TCP_ESTABLISHED && state != TCP_FIN_WAIT1 && state != TCP_FIN_WAIT2)
		return 0;
	c = bpf_sk_storage_get(&connections, tp, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!c)
		return 0;
	restore(tp, tp, c);
	unheard = !c->cookie || c->left;
	/* A clamp far below the kernel's own was set by the program. */
	if (!c->cookie && tp->window_clamp < natural_clamp(tp) / 2)
		c->own_clamp = tp->window_clamp;
	c->cookie = bpf_get_socket_cookie(tp);
	c->epoch = bpf_ktime_get_ns();
	c->epoch_bytes = tp->bytes_received + tp->bytes_acked;
	c->left = 0;
	c->bulk = 0;
	c->asked = 1;
	if (bpf_setsockopt(tp, IPPROTO_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &flags, sizeof(flags)) && unheard)
		bpf_seq_write(ctx->meta->seq, &mark, sizeof(mark));
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
