/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The parts of the kernel that the programs need: the UAPI contexts and helpers (linux/bpf.h), and the few fields of the
 * kernel's structures that they read, which the loader relocates by the running kernel's BTF (CO-RE). Written out here,
 * so that the build needs only a compiler. */

#ifndef SWEETSPOT_KERNEL_H
#define SWEETSPOT_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef int __s32;
typedef long long __s64;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define NULL ((void *)0)

/* Map definitions in libbpf's form (BTF-defined maps). */
#define __uint(name, value) int(*name)[value]
#define __type(name, value) typeof(value) *name

enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_LPM_TRIE = 11,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
};
enum { BPF_F_NO_PREALLOC = 1 << 0, BPF_F_CLONE = 1 << 9 };
enum { BPF_SK_STORAGE_GET_F_CREATE = 1 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2 };

/* The events BPF_SOCK_OPS_*_CB, and the flags that request them. */
enum {
	BPF_SOCK_OPS_TCP_CONNECT_CB = 3,
	BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB = 4,
	BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB = 5,
	BPF_SOCK_OPS_RETRANS_CB = 9,
	BPF_SOCK_OPS_STATE_CB = 10,
	BPF_SOCK_OPS_RTT_CB = 12,
	BPF_SOCK_OPS_HDR_OPT_LEN_CB = 14,
};
enum {
	BPF_SOCK_OPS_RETRANS_CB_FLAG = 1 << 1,
	BPF_SOCK_OPS_STATE_CB_FLAG = 1 << 2,
	BPF_SOCK_OPS_RTT_CB_FLAG = 1 << 3,
	BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG = 1 << 6,
};

enum {
	SOL_SOCKET = 1,
	SO_MAX_PACING_RATE = 47,
	IPPROTO_TCP = 6,
	TCP_WINDOW_CLAMP = 10,
	TCP_CONGESTION = 13,
	TCP_CA_NAME_MAX = 16,
	TCP_BPF_IW = 1001,
	TCP_BPF_SOCK_OPS_CB_FLAGS = 1008,
	AF_INET = 2,
	AF_INET6 = 10,
	TCP_ESTABLISHED = 1,
	TCP_FIN_WAIT1 = 4,
	TCP_FIN_WAIT2 = 5,
	TCP_CLOSE = 7,
	TCP_CA_Open = 0,
	PIDTYPE_TGID = 1,
	MAX_PID_NS_LEVEL = 32,
};

struct bpf_sock;
struct seq_file;
struct task_struct;

struct bpf_sock_ops {
	__u32 op;
	union {
		__u32 args[4];
		__u32 reply;
		__u32 replylong[4];
	};
	__u32 family;
	__u32 remote_ip4;
	__u32 local_ip4;
	__u32 remote_ip6[4];
	__u32 local_ip6[4];
	__u32 remote_port;
	__u32 local_port;
	__u32 is_fullsock;
	__u32 snd_cwnd;
	__u32 srtt_us;
	__u32 bpf_sock_ops_cb_flags;
	__u32 state;
	__u32 rtt_min;
	__u32 snd_ssthresh;
	__u32 rcv_nxt;
	__u32 snd_nxt;
	__u32 snd_una;
	__u32 mss_cache;
	__u32 ecn_flags;
	__u32 rate_delivered;
	__u32 rate_interval_us;
	__u32 packets_out;
	__u32 retrans_out;
	__u32 total_retrans;
	__u32 segs_in;
	__u32 data_segs_in;
	__u32 segs_out;
	__u32 data_segs_out;
	__u32 lost_out;
	__u32 sacked_out;
	__u32 sk_txhash;
	__u64 bytes_received;
	__u64 bytes_acked;
	struct bpf_sock *sk __attribute__((aligned(8)));
};

struct bpf_sockopt {
	struct bpf_sock *sk __attribute__((aligned(8)));
	void *optval __attribute__((aligned(8)));
	void *optval_end __attribute__((aligned(8)));
	__s32 level;
	__s32 optname;
	__s32 optlen;
	__s32 retval;
};

/* Helpers, by their number in enum bpf_func_id. */
static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static __u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static __u64 (*const bpf_get_socket_cookie)(void *ctx) = (void *)46;
static long (*const bpf_setsockopt)(void *socket, int level, int optname, void *optval, int optlen) = (void *)49;
static long (*const bpf_getsockopt)(void *socket, int level, int optname, void *optval, int optlen) = (void *)57;
static long (*const bpf_sock_ops_cb_flags_set)(struct bpf_sock_ops *ctx, int flags) = (void *)59;
static void *(*const bpf_sk_storage_get)(void *map, void *sk, void *value, __u64 flags) = (void *)107;
static long (*const bpf_probe_read_kernel)(void *to, __u32 size, const void *from) = (void *)113;
static long (*const bpf_seq_write)(struct seq_file *seq, const void *data, __u32 size) = (void *)127;
static void *(*const bpf_ringbuf_reserve)(void *ringbuf, __u64 size, __u64 flags) = (void *)131;
static void (*const bpf_ringbuf_submit)(void *data, __u64 flags) = (void *)132;
static struct tcp_sock *(*const bpf_skc_to_tcp_sock)(void *sk) = (void *)137;
static struct task_struct *(*const bpf_get_current_task_btf)(void) = (void *)158;
static __u64 (*const bpf_ktime_get_coarse_ns)(void) = (void *)160;

/* enum bpf_field_info_kind (libbpf's bpf_core_read.h). */
#define field_exists(field) __builtin_preserve_field_info(field, 2)

/* Reads a bit-field at its position in the running kernel (BPF_CORE_READ_BITFIELD of libbpf's bpf_core_read.h). */
#define bitfield(s, field)                                                                          \
	({                                                                                          \
		const void *at = (const char *)(s) + __builtin_preserve_field_info((s)->field, 0); \
		__u64 bits = 0;                                                                     \
		switch (__builtin_preserve_field_info((s)->field, 1)) {                            \
		case 1:                                                                             \
			bits = *(const __u8 *)at;                                                   \
			break;                                                                      \
		case 2:                                                                             \
			bits = *(const __u16 *)at;                                                  \
			break;                                                                      \
		case 4:                                                                             \
			bits = *(const __u32 *)at;                                                  \
			break;                                                                      \
		case 8:                                                                             \
			bits = *(const __u64 *)at;                                                  \
			break;                                                                      \
		}                                                                                   \
		bits <<= __builtin_preserve_field_info((s)->field, 4);                             \
		bits >> __builtin_preserve_field_info((s)->field, 5);                              \
	})

/* Copied as a whole, so not relocated (linux/pid.h). */
struct upid {
	int nr;
	struct pid_namespace *ns;
};

/* The kernel's own structures. Only the names matter; the loader finds the offsets. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct in6_addr {
	union {
		__u32 u6_addr32[4];
	} in6_u;
};

struct sock_common {
	__u32 skc_daddr;
	__u32 skc_rcv_saddr;
	__u16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

typedef struct {
	__u32 val;
} kuid_t;

struct inode {
	unsigned long i_ino;
};

struct file {
	struct inode *f_inode;
};

struct socket {
	struct file *file;
};

typedef struct {
	int owned;
} socket_lock_t;

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	struct ns_common ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1]; /* level + 1 of them */
};

struct signal_struct {
	struct pid *pids[4];
};

struct task_struct {
	struct signal_struct *signal;
};

struct sock {
	struct sock_common __sk_common;
	socket_lock_t sk_lock;
	int sk_rcvbuf;
	struct socket *sk_socket;
	kuid_t sk_uid;
	unsigned long sk_max_pacing_rate;
};

struct inet_sock {
	struct sock sk;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	__u8 icsk_ca_state : 5;
};

struct minmax_sample {
	__u32 t;
	__u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u64 bytes_received;
	__u64 bytes_acked;
	__u32 data_segs_out;
	__u32 snd_una;
	__u32 write_seq;
	__u32 rcv_nxt;
	__u32 copied_seq;
	__u32 rcv_wnd;
	__u32 window_clamp;
	__u32 srtt_us;
	__u32 mss_cache;
	__u32 packets_out;
	__u32 retrans_out;
	__u32 sacked_out;
	__u32 lost_out;
	__u32 delivered;
	__u32 rate_delivered;
	__u32 rate_interval_us;
	__u32 rcv_ooopack;
	__u16 advmss;
	__u8 scaling_ratio;
	__u8 rate_app_limited : 1;
	struct {
		__u32 rtt_us;
	} rcv_rtt_est;
	struct minmax rtt_min;
};

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};

#pragma clang attribute pop

#endif
