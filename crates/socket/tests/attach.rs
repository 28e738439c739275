//! Attaches and detaches sockets while the program closes or reuses their descriptors.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use socket2::{Domain, Socket, Type};
use sweetspot_linux::tcp::options;
use sweetspot_socket::{
    Activity, AttachError, Autotuning, Bytes, EventKind, Observer, Options, Pool, SizedSocket,
    SocketError, SocketEvent, SocketSizing, now,
};

use sweetspot_testing::seccomp::{FORBIDDEN_IN_CONTAINERS, forbidding};

#[path = "common/mod.rs"]
mod common;
use common::{pair, pair_with_segments, wait_until};

fn clamp(stream: &TcpStream) -> Bytes {
    options::window_clamp(stream).unwrap()
}

fn fixed(window: u64) -> Options {
    Options { sizing: SocketSizing::Fixed(Bytes::new(window)), ..Options::default() }
}

fn kernel() -> Options {
    Options { sizing: SocketSizing::Kernel, ..Options::default() }
}

/// Transfers `bytes` from `sender` to `receiver` while polling the pool.
fn carry(pool: &Pool, sender: &mut TcpStream, receiver: &mut TcpStream, bytes: usize) {
    let block = [7; 10_000];
    let mut sink = [0; 10_000];
    for _ in 0..bytes / block.len() {
        sender.write_all(&block).unwrap();
        receiver.read_exact(&mut sink).unwrap();
        pool.poll(now());
    }
}

fn poll_until(pool: &Pool, what: &str, mut is_done: impl FnMut() -> bool) {
    wait_until(what, || {
        pool.poll(now());
        is_done()
    });
}

#[test]
fn a_limit_is_set_when_data_flows_and_removed_with_its_handle() {
    let pool = Pool::new().unwrap();
    let (mut sender, mut receiver) = pair();
    let before = clamp(&receiver);
    let sized = pool.attach(&receiver, fixed(300_000)).unwrap();
    poll_until(&pool, "a limit", || {
        carry(&pool, &mut sender, &mut receiver, 100_000);
        sized.report().unwrap().limit == Some(Bytes::new(300_000))
    });
    assert!(clamp(&receiver) <= Bytes::new(300_000), "{}", clamp(&receiver));
    let report = sized.report().unwrap();
    assert_eq!(report.activity, Activity::Active);
    assert!(report.received >= Bytes::new(100_000) && report.rtt.is_some());
    drop(sized);
    assert!(clamp(&receiver) >= before, "{} {before}", clamp(&receiver));
    assert_eq!(pool.sockets(), 0);
}

#[test]
fn a_programs_clamp_is_tightened_and_restored_on_detach() {
    let pool = Pool::new().unwrap();
    // Four of loopback's usual segments would exceed the window that the kernel gives by itself.
    let (mut sender, mut receiver) = pair_with_segments(1400);
    let own = Bytes::new(280_003);
    options::set_window_clamp(&receiver, own).unwrap();
    let sized = pool.attach(&receiver, fixed(50_000)).unwrap();
    poll_until(&pool, "a limit", || {
        carry(&pool, &mut sender, &mut receiver, 100_000);
        clamp(&receiver) == Bytes::new(50_000)
    });
    sized.detach().unwrap();
    assert_eq!(clamp(&receiver), own);
}

#[test]
fn only_a_tcp_connection_can_be_attached_and_only_once() {
    let pool = Pool::new().unwrap();
    let attach = |fd: &OwnedFd| pool.attach(fd, kernel());
    let file = OwnedFd::from(File::open("/proc/self/stat").unwrap());
    assert!(matches!(attach(&file), Err(AttachError::NotTcp)));
    let datagrams = OwnedFd::from(UdpSocket::bind("127.0.0.1:0").unwrap());
    assert!(matches!(attach(&datagrams), Err(AttachError::NotTcp)));
    let listener = OwnedFd::from(TcpListener::bind("127.0.0.1:0").unwrap());
    assert!(matches!(attach(&listener), Err(AttachError::Listening)));
    let stream = OwnedFd::from(pair().0);
    let sized = attach(&stream).unwrap();
    assert!(matches!(attach(&stream), Err(AttachError::AlreadyAttached)));
    sized.detach().unwrap();
    assert!(attach(&stream).is_ok());
}

#[test]
fn a_socket_closed_by_another_thread_only_returns_errors() {
    let pool = Pool::new().unwrap();
    let (sender, receiver) = pair();
    let sized = pool.attach(&receiver, fixed(100_000)).unwrap();
    std::thread::spawn(move || drop(receiver)).join().unwrap();
    poll_until(&pool, "the end", || sized.report() == Err(SocketError::Closed));
    assert_eq!(sized.detach(), Err(SocketError::Closed));
    // No duplicate keeps the connection open: the peer reads EOF.
    assert_eq!((&sender).read(&mut [0]).unwrap(), 0);
}

#[test]
fn a_reused_descriptor_does_not_inherit_the_limit() {
    let pool = Pool::new().unwrap();
    let (_peer, first) = pair();
    let (_other_peer, second) = pair();
    let before = clamp(&second);
    let sized = pool.attach(&first, fixed(50_000)).unwrap();
    // Closes the first socket; its descriptor number now belongs to the second.
    let mut moved = OwnedFd::from(first);
    rustix::io::dup2(&second, &mut moved).unwrap();
    poll_until(&pool, "the end", || sized.report() == Err(SocketError::Closed));
    assert_eq!(sized.detach(), Err(SocketError::Closed));
    assert_eq!(clamp(&second), before);
}

#[test]
fn a_socket_may_be_attached_before_it_connects() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let pool = Pool::new().unwrap();
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let sized = pool.attach(&socket, kernel()).unwrap();
    assert_eq!(sized.report().unwrap().activity, Activity::Connecting);
    socket.connect(&listener.local_addr().unwrap().into()).unwrap();
    poll_until(&pool, "the handshake", || sized.report().unwrap().activity == Activity::Idle);
}

#[test]
fn a_locked_buffer_is_reported_and_unlocked_if_allowed() {
    let pool = Pool::new().unwrap();
    let (_peer, stream) = pair();
    let buffer = options::set_receive_buffer(&stream, Bytes::new(100_000)).unwrap();
    let is_locked = || options::buffer_locks(&stream).map(|locks| locks.receive);
    if is_locked().is_err() {
        return sweetspot_testing::skipped("this kernel has no SO_BUF_LOCK (Linux 5.16)");
    }
    let sized = pool.attach(&stream, kernel()).unwrap();
    let autotuning = |sized: &SizedSocket| sized.report().unwrap().autotuning;
    poll_until(&pool, "a lock", || autotuning(&sized) == Autotuning::Off { buffer });
    drop(sized);
    assert!(is_locked().unwrap());
    let sized = pool.attach(&stream, Options { unlock_buffers: true, ..kernel() }).unwrap();
    poll_until(&pool, "autotuning", || autotuning(&sized) == Autotuning::On);
    assert!(!is_locked().unwrap());
}

#[test]
fn an_observer_receives_the_limit_and_the_end_of_the_connection() {
    let pool = Pool::new().unwrap();
    let (mut sender, mut receiver) = pair();
    let (event_sender, events) = mpsc::channel();
    let observing = pool.clone();
    let observer = move |event: &SocketEvent| {
        // No lock is held, so the observer may call the pool.
        assert!(observing.sockets() > 0);
        event_sender.send(event.kind).unwrap();
    };
    let observer = Some(Arc::new(observer) as Observer);
    let sized = pool.attach(&receiver, Options { observer, ..fixed(200_000) }).unwrap();
    let mut kinds = Vec::new();
    poll_until(&pool, "a limit", || {
        carry(&pool, &mut sender, &mut receiver, 100_000);
        kinds.extend(events.try_iter());
        kinds.contains(&EventKind::Taken)
    });
    drop((sender, receiver));
    poll_until(&pool, "the end", || {
        kinds.extend(events.try_iter());
        kinds.contains(&EventKind::Gone)
    });
    drop(sized);
}

#[test]
fn the_memory_budget_bounds_the_sum_of_all_windows() {
    let pool = Pool::new().unwrap();
    let budget = 600_000;
    pool.set_memory_budget(Some(Bytes::new(budget)));
    let mut pairs: Vec<_> = (0..3).map(|_| pair()).collect();
    let attach =
        |(_, receiver): &(TcpStream, TcpStream)| pool.attach(receiver, Options::default()).unwrap();
    let sized: Vec<SizedSocket> = pairs.iter().map(attach).collect();
    let limits = || sized.iter().map(|sized| sized.report().unwrap().limit).collect::<Vec<_>>();
    poll_until(&pool, "three limits", || {
        for (sender, receiver) in &mut pairs {
            carry(&pool, sender, receiver, 30_000);
        }
        limits().iter().all(Option::is_some)
    });
    let sum = limits().into_iter().flatten().fold(Bytes::ZERO, |sum, limit| sum + limit);
    // At least four of loopback's segments of 65,483 B for each socket.
    let min = 3 * 4 * 65_483;
    assert!(sum <= Bytes::new(budget.max(min)), "{sum}");
}

/// A program may free its observer's state once it has detached the socket.
#[test]
fn an_observer_is_never_called_after_detach() {
    let pool = Pool::new().unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Acquire) {
                pool.poll(now());
            }
        });
        for _ in 0..50 {
            let (mut sender, mut receiver) = pair();
            let is_detached = Arc::new(AtomicBool::new(false));
            let (seen, calls) = (Arc::clone(&is_detached), Arc::new(AtomicUsize::new(0)));
            let (counted, late) = (Arc::clone(&calls), Arc::new(AtomicBool::new(false)));
            let noted = Arc::clone(&late);
            let observer: Observer = Arc::new(move |_: &SocketEvent| {
                counted.fetch_add(1, Ordering::Relaxed);
                noted.fetch_or(seen.load(Ordering::Acquire), Ordering::Relaxed);
            });
            let options = Options { observer: Some(observer), ..fixed(300_000) };
            let sized = pool.attach(&receiver, options).unwrap();
            wait_until("an event", || {
                sender.write_all(&[0; 20_000]).unwrap();
                receiver.read_exact(&mut [0; 20_000]).unwrap();
                calls.load(Ordering::Relaxed) > 0
            });
            drop((sender, receiver));
            drop(sized);
            is_detached.store(true, Ordering::Release);
            std::thread::yield_now();
            assert!(!late.load(Ordering::Relaxed));
        }
        is_done.store(true, Ordering::Release);
    });
}

#[test]
fn an_observer_may_detach_its_socket() {
    let pool = Pool::new().unwrap();
    let (mut sender, mut receiver) = pair();
    let own: Arc<Mutex<Option<SizedSocket>>> = Arc::default();
    let taken = Arc::clone(&own);
    let observer: Observer = Arc::new(move |_: &SocketEvent| drop(taken.lock().unwrap().take()));
    let sized = pool.attach(&receiver, Options { observer: Some(observer), ..fixed(300_000) });
    *own.lock().unwrap() = Some(sized.unwrap());
    poll_until(&pool, "the end", || {
        carry(&pool, &mut sender, &mut receiver, 100_000);
        own.lock().unwrap().is_none()
    });
    assert_eq!(pool.sockets(), 0);
}

#[test]
fn polling_with_an_earlier_time_is_harmless() {
    let pool = Pool::new().unwrap();
    let (mut sender, mut receiver) = pair();
    let sized = pool.attach(&receiver, Options::default()).unwrap();
    carry(&pool, &mut sender, &mut receiver, 200_000);
    pool.poll(sweetspot_socket::Time::ZERO);
    carry(&pool, &mut sender, &mut receiver, 200_000);
    assert!(sized.report().is_ok());
}

/// With Docker's default seccomp profile.
#[test]
fn the_other_tests_pass_in_a_container() {
    let this = std::env::current_exe().unwrap();
    let (calls, refused) = (&FORBIDDEN_IN_CONTAINERS, rustix::io::Errno::PERM.raw_os_error());
    let Some(mut rest) = forbidding(calls, refused, this.to_str().unwrap()) else { return };
    let output = rest.args(["--skip", "in_a_container"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
