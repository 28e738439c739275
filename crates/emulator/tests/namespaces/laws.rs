//! Invariants inside the namespaces.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::time::Duration as StdDuration;

use sweetspot_emulator::{Certificate, Emulation, EmulatorError, HostPair, Side};
use sweetspot_linux::datagrams::{Count, Datagrams};
use sweetspot_linux::{clock, ethtool, event_fd, scheduling};
use sweetspot_path::{Change, DeliveryTrace, Variation};
use sweetspot_units::{Bytes, Duration, Rate, Time};

/// An IPv4 and a UDP header: 20 + 8 bytes.
const UDP_HEADERS: u64 = 28;
/// Long enough for any test here on a busy machine.
const READ_TIMEOUT: StdDuration = StdDuration::from_secs(20);

fn emulate(path: &str) -> Emulation {
    Emulation::start(&path.parse().unwrap()).unwrap()
}

fn udp(side: &Side) -> UdpSocket {
    let socket = side.run(|| UdpSocket::bind((side.address(), 7))).unwrap().unwrap();
    socket.set_read_timeout(Some(READ_TIMEOUT)).unwrap();
    socket
}

fn echo_port(side: &Side) -> SocketAddr {
    (side.address(), 7).into()
}

/// Sends `count` datagrams of `size` IP bytes from near to far, as fast as possible.
fn burst(emulation: &Emulation, count: usize, size: u64) -> Duration {
    let near = udp(emulation.near());
    let payload = vec![0; (size - UDP_HEADERS) as usize];
    let begun = clock::now();
    for _ in 0..count {
        near.send_to(&payload, echo_port(emulation.far())).unwrap();
    }
    clock::now().since(begun)
}

/// Asserts that 20 packets of a burst of 100 fitted into the buffer, and one more for each 80 ms that a busy machine needed
/// to send it.
fn assert_20_found_room(dropped: u64, burst: Duration, certificate: &Certificate) {
    let more = burst.as_nanos().div_ceil(Duration::from_millis(80).as_nanos());
    assert!(dropped <= 80 && dropped + more >= 80, "{dropped} in {burst}: {certificate}");
}

/// Sends `amount` bytes over TCP from near to far.
fn transfer(emulation: &Emulation, amount: usize) {
    let (near, far) = (emulation.near(), emulation.far());
    let listener = far.run(|| TcpListener::bind((far.address(), 80))).unwrap().unwrap();
    // All pieces are different.
    let content: Vec<u8> = (0..amount as u32).map(|n| (n.wrapping_mul(n) >> 8) as u8).collect();
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let mut received = Vec::new();
            listener.accept().unwrap().0.read_to_end(&mut received).unwrap();
            received
        });
        let mut sender = near.run(|| TcpStream::connect((far.address(), 80))).unwrap().unwrap();
        sender.write_all(&content).unwrap();
        drop(sender);
        assert!(receiver.join().unwrap() == content);
    });
}

/// Asserts that nothing failed, except possibly the timing on a busy machine.
fn assert_sane(certificate: &Certificate) {
    for direction in [&certificate.up, &certificate.down] {
        let losses = direction.dropped_by_buffer
            + direction.dropped_at_random
            + direction.dropped_by_policer;
        let accounted = direction.packets_out + losses + direction.packets_held;
        assert_eq!(direction.packets_in, accounted, "{certificate}");
        assert_eq!(direction.lost_by_machine.total(), 0, "{certificate}");
        let released: u64 = direction.lateness.buckets.iter().map(|b| b.packets).sum();
        assert_eq!(released, direction.packets_out, "{certificate}");
        assert!(direction.lateness.p50 <= direction.lateness.p99);
        assert!(direction.lateness.p99 <= direction.lateness.max);
    }
}

/// The position at which a datagram of another flow arrives that was sent after a burst of 200.
fn place_behind_a_burst(queue: &str) -> usize {
    const BURST: usize = 200;
    let emulation = emulate(&format!("rate=5Mbit/s rtt=20ms buffer=1MB queue={queue}"));
    let far = udp(emulation.far());
    let near = emulation.near();
    let other = near.run(|| UdpSocket::bind((near.address(), 8)));
    burst(&emulation, BURST, 1500);
    other.unwrap().unwrap().send_to(b"other", echo_port(emulation.far())).unwrap();
    let mut before = 0;
    while far.recv_from(&mut [0; 1500]).unwrap().1.port() != 8 {
        before += 1;
    }
    assert_sane(&emulation.finish().unwrap());
    before
}

pub fn a_flow_with_a_queue_of_its_own_does_not_wait_for_another() {
    // FQ-CoDel serves a new flow next (RFC 8290, section 4.2). The 200 datagrams take 480 ms; the burst's first few
    // milliseconds are already in flight.
    assert!(place_behind_a_burst("fq-codel") < 100);
    assert_eq!(place_behind_a_burst("drop-tail"), 200);
}

pub fn a_round_trip_takes_the_delay_of_both_ways() {
    let emulation = emulate("rate=1Gbit/s up.delay=30ms down.delay=10ms buffer=100kB");
    let (near, far) = (udp(emulation.near()), udp(emulation.far()));
    let mut best = Duration::MAX;
    for _ in 0..10 {
        let sent = clock::now();
        near.send_to(b"ping", echo_port(emulation.far())).unwrap();
        let (_, from) = far.recv_from(&mut [0; 16]).unwrap();
        far.send_to(b"pong", from).unwrap();
        near.recv_from(&mut [0; 16]).unwrap();
        let rtt = clock::now().since(sent);
        // 30 + 10 ms of delay; serialisation of 32 bytes at 1 Gbit/s adds 0.26 us each way.
        assert!(rtt >= Duration::from_millis(40), "{rtt} is faster than the path");
        best = best.min(rtt);
    }
    // The minimum of ten, with tolerance for a busy machine.
    assert!(best < Duration::from_millis(50), "{best}");
    assert_sane(&emulation.finish().unwrap());
}

pub fn a_burst_fills_the_buffer_and_no_more() {
    // 1000 B at 100 kbit/s take 80 ms, so nothing leaves during the burst. Of 100 packets the buffer accepts 20, one on the
    // link and 19 queued, whatever the delay.
    for delay in ["0ms", "1s"] {
        let emulation = emulate(&format!("rate=100kbit/s delay={delay} buffer=20pkt"));
        let _far = udp(emulation.far());
        let took = burst(&emulation, 100, 1000);
        let certificate = emulation.finish().unwrap();
        assert_eq!(certificate.up.packets_in, 100);
        assert_20_found_room(certificate.up.dropped_by_buffer, took, &certificate);
        assert_eq!(certificate.up.queue_max, Bytes::new(20_000));
        assert_sane(&certificate);
    }
}

pub fn tcp_packets_stay_mtu_sized() {
    let paths = [(1500, "200Mbit/s"), (1400, "200Mbit/s"), (9000, "200Mbit/s")];
    // At these rates packets arrive as super-frames, and some leave as super-frames.
    let fast = [(1500, "4Gbit/s"), (1400, "10Gbit/s"), (9000, "10Gbit/s")];
    for (mtu, rate) in paths.into_iter().chain(fast) {
        let emulation = emulate(&format!("rate={rate} rtt=4ms buffer=4MB mtu={mtu}B"));
        transfer(&emulation, 1_000_000);
        let certificate = emulation.finish().unwrap();
        let up = &certificate.up;
        // No packet was longer (it would count as lost by the machine). With 52 bytes of headers per packet, a megabyte
        // takes at least this many packets.
        assert_sane(&certificate);
        assert!(up.packets_in >= 1_000_000_u64.div_ceil(mtu - 52), "{certificate}");
        // Packets are not unnecessarily short either: the mean, with SYN and FIN, is near the MTU.
        assert!(up.bytes_in.get() / up.packets_in > mtu * 3 / 4, "{certificate}");
    }
}

/// A path with super-frames, if possible, from near to far of `up`: the reverse direction is fast enough for that.
fn emulate_with_offload(up: &str) -> Emulation {
    emulate(&format!("{up} down.rate=10Gbit/s"))
}

fn knows_offload(emulation: &Emulation) -> bool {
    emulation.near().run(|| ethtool::offloads("path0")).unwrap().tso == Some(true)
}

pub fn only_rates_that_need_it_have_super_frames() {
    assert!(!knows_offload(&emulate("rate=1Gbit/s rtt=2ms buffer=1MB")));
    let fast = emulate("rate=2Gbit/s rtt=2ms buffer=1MB");
    assert_eq!(knows_offload(&fast), sweetspot_linux::packet::knows_offload());
}

/// Sockets at both ends of `emulation`. Datagrams of `size` IP bytes leave the near one as super-frames.
fn super_frames(emulation: &Emulation, size: u64) -> (Datagrams, Datagrams) {
    let bind =
        |side: &Side| side.run(|| Datagrams::bind((side.address(), 7).into())).unwrap().unwrap();
    let (near, far) = (bind(emulation.near()), bind(emulation.far()));
    near.connect(echo_port(emulation.far())).unwrap();
    near.cut_into(Bytes::new(size - UDP_HEADERS)).unwrap();
    (near, far)
}

/// The datagrams received at `socket` until no more arrive.
fn arrived(socket: &Datagrams) -> Count {
    // On a busy machine even the first may be late.
    event_fd::wait_readable(&[socket.as_fd()], clock::now() + Duration::from_secs(30)).unwrap();
    let mut all = Count::default();
    let mut last = clock::now();
    while clock::now().since(last) < Duration::from_millis(500) {
        let count = socket.count().unwrap();
        if count.datagrams > 0 {
            last = clock::now();
        }
        all.datagrams += count.datagrams;
        all.payload += count.payload;
    }
    all
}

pub fn the_packets_of_a_super_frame_are_packets_of_their_own() {
    let emulation = emulate_with_offload("up.rate=4Gbit/s rtt=4ms buffer=10MB");
    let (near, far) = super_frames(&emulation, 1000);
    // 40 datagrams in each, the last one of 500 bytes.
    for _ in 0..50 {
        near.send(Bytes::new(39 * 972 + 472)).unwrap();
    }
    let payload = Bytes::new(50 * (39 * 972 + 472));
    assert_eq!(arrived(&far), Count { datagrams: 2000, payload, marked: 0 });
    let certificate = emulation.finish().unwrap();
    assert_eq!((certificate.up.packets_in, certificate.up.packets_out), (2000, 2000));
    assert_eq!(certificate.up.bytes_in, Bytes::new(50 * 39_500));
    assert_sane(&certificate);
}

pub fn packets_of_a_super_frame_are_dropped_one_by_one() {
    // 20 fit into the bucket in the first case, and into the buffer in the second: one on the link and 19 queued.
    for up in ["up.rate=1Gbit/s up.policer=100kbit/s up.policer_burst=20kB", "up.rate=100kbit/s"] {
        let emulation = emulate_with_offload(&format!("{up} rtt=2ms buffer=20pkt"));
        let (near, far) = super_frames(&emulation, 1000);
        near.send(Bytes::new(44 * 972)).unwrap();
        assert_eq!(arrived(&far).datagrams, 20);
        let certificate = emulation.finish().unwrap();
        let dropped = certificate.up.dropped_by_policer + certificate.up.dropped_by_buffer;
        assert_eq!((certificate.up.packets_in, dropped), (44, 24), "{certificate}");
        assert_sane(&certificate);
    }
}

pub fn random_loss_is_counted_as_such() {
    let emulation = emulate("rate=1Gbit/s rtt=2ms buffer=10MB up.loss=20%");
    let _far = udp(emulation.far());
    burst(&emulation, 1000, 500);
    let certificate = emulation.finish().unwrap();
    // Binomial: mean 200, standard deviation sqrt(1000 x 0.2 x 0.8) = 12.6; five of them.
    assert!(certificate.up.dropped_at_random.abs_diff(200) < 63, "{certificate}");
    assert_eq!(certificate.up.dropped_by_buffer, 0);
    assert_sane(&certificate);
}

pub fn each_direction_is_its_own() {
    let emulation = emulate("up.rate=100kbit/s down.rate=1Gbit/s rtt=1ms buffer=2pkt");
    let (near, far) = (udp(emulation.near()), udp(emulation.far()));
    for _ in 0..50 {
        near.send_to(&[0; 972], echo_port(emulation.far())).unwrap();
    }
    // 10 packets of 1 kB at 1 Gbit/s never queue if each is sent after the previous one has passed.
    for _ in 0..10 {
        far.send_to(&[0; 972], echo_port(emulation.near())).unwrap();
        near.recv_from(&mut [0; 1000]).unwrap();
    }
    let certificate = emulation.finish().unwrap();
    assert!(certificate.up.dropped_by_buffer >= 40, "{certificate}");
    assert_eq!(certificate.down.dropped_by_buffer, 0, "{certificate}");
    assert_eq!(certificate.down.packets_out, 10);
}

pub fn the_rate_can_change_midway() {
    let emulation = emulate("rate=10kbit/s rtt=0ms buffer=100pkt");
    let far = udp(emulation.far());
    // At 10 kbit/s these would take 40 s.
    burst(&emulation, 50, 1000);
    emulation.set_rate_up(Rate::from_mbit_per_second(100));
    emulation.set_rate_up(Rate::ZERO);
    for _ in 0..50 {
        far.recv_from(&mut [0; 1000]).unwrap();
    }
    let samples = emulation.observe();
    assert!(samples.windows(2).all(|w| w[0].at < w[1].at));
    assert!(samples.windows(2).all(|w| w[0].up.delivered <= w[1].up.delivered));
    assert_eq!(emulation.finish().unwrap().up.packets_out, 50);
}

pub fn a_policer_drops_what_its_bucket_does_not_hold() {
    let emulation =
        emulate("rate=1Gbit/s rtt=2ms buffer=1MB up.policer=100kbit/s up.policer_burst=20kB");
    let _far = udp(emulation.far());
    let took = burst(&emulation, 100, 1000);
    let certificate = emulation.finish().unwrap();
    assert_20_found_room(certificate.up.dropped_by_policer, took, &certificate);
    assert_eq!(certificate.up.dropped_by_buffer, 0, "{certificate}");
    assert_sane(&certificate);
}

pub fn a_path_varies_as_it_is_told() {
    let emulation = emulate("rate=10kbit/s rtt=2ms buffer=100pkt");
    let far = udp(emulation.far());
    let receive = |count: usize, since: Time| {
        for _ in 0..count {
            far.recv_from(&mut [0; 1600]).unwrap();
        }
        clock::now().since(since)
    };
    // At 10 kbit/s these take 40 s. From 20 ms on, at 100 Mbit/s, only the first takes long: 0.8 s.
    let change = Change {
        at: Duration::from_millis(20),
        rate: Some(Rate::from_mbit_per_second(100)),
        delay: None,
    };
    let faster = Variation { trace: None, changes: vec![change] };
    emulation.vary(clock::now(), faster, Variation::default());
    burst(&emulation, 50, 1000);
    assert!(receive(50, clock::now()) < Duration::from_secs(20));
    // One packet every 30 ms, whatever the rate.
    let trace = DeliveryTrace::parse("30\n").unwrap();
    let traced = Variation { trace: Some(trace.into()), changes: Vec::new() };
    emulation.vary(clock::now(), traced, Variation::default());
    let begun = clock::now();
    burst(&emulation, 11, 1400);
    // The ten packets after the first take 300 ms.
    assert!(receive(11, begun) >= Duration::from_millis(300));
    assert_sane(&emulation.finish().unwrap());
}

pub fn an_aqm_marks_where_both_hosts_understand() {
    let slow = "rate=20Mbit/s rtt=10ms buffer=1MB queue=codel";
    for (setting, marks) in [("1", true), ("0", false)] {
        an_aqm_marks(emulate(slow), setting, marks);
        an_aqm_marks(emulate_with_offload(&slow.replace("rate", "up.rate")), setting, marks);
    }
}

fn an_aqm_marks(emulation: Emulation, setting: &str, marks: bool) {
    for side in [emulation.near(), emulation.far()] {
        let set = || std::fs::write("/proc/sys/net/ipv4/tcp_ecn", setting);
        side.run(set).unwrap().unwrap();
    }
    // HyStart may leave slow start before a queue builds up. Half a packet per 10 ms then fills CoDel's 5 ms within its 100
    // ms well before 2.4 s, the time of 6 MB at 20 Mbit/s.
    transfer(&emulation, 6_000_000);
    let certificate = emulation.finish().unwrap();
    assert_eq!(certificate.up.dropped_by_buffer == 0, marks, "{certificate}");
    assert_sane(&certificate);
}

pub fn emulations_follow_one_another() {
    for round in 0..5 {
        let emulation = emulate("rate=100Mbit/s rtt=2ms buffer=1MB");
        transfer(&emulation, 100_000);
        let certificate = emulation.finish().unwrap();
        assert_sane(&certificate);
        assert!(certificate.up.bytes_out > Bytes::new(100_000), "round {round}: {certificate}");
    }
    // An emulation that is dropped leaves nothing behind, like one that is finished.
    drop(emulate("rate=100Mbit/s rtt=2ms buffer=1MB"));
    // Two header lines and the loopback device.
    assert_eq!(std::fs::read_to_string("/proc/thread-self/net/dev").unwrap().lines().count(), 3);
}

/// The minimum of five RTTs of datagrams between the hosts of a pair.
fn min_round_trip(emulation: &Emulation, number: usize) -> Duration {
    let (near, far) = (emulation.near(), emulation.far());
    let bind = |side: &Side| {
        let socket = side.run(|| UdpSocket::bind((side.host_pair(number), 7))).unwrap().unwrap();
        socket.set_read_timeout(Some(READ_TIMEOUT)).unwrap();
        socket
    };
    let (one, other) = (bind(near), bind(far));
    let trips = (0..5).map(|_| {
        let sent = clock::now();
        one.send_to(b"ping", (far.host_pair(number), 7)).unwrap();
        let (_, from) = other.recv_from(&mut [0; 16]).unwrap();
        assert_eq!(from.ip(), near.host_pair(number));
        other.send_to(b"pong", from).unwrap();
        one.recv_from(&mut [0; 16]).unwrap();
        clock::now().since(sent)
    });
    trips.min().unwrap()
}

pub fn host_pairs_share_the_bottleneck_and_have_round_trips_of_their_own() {
    let ms = Duration::from_millis;
    let host_pair = |extra_delay| HostPair {
        extra_delay,
        initial_window: Some(2),
        quick_acks: true,
        hops: None,
    };
    let path = "rate=100Mbit/s rtt=10ms buffer=100kB".parse().unwrap();
    let emulation = Emulation::start_with(&path, &[host_pair(ms(0)), host_pair(ms(40))]).unwrap();
    for (number, min) in [(0, ms(10)), (1, ms(90))] {
        let best = min_round_trip(&emulation, number);
        // 5 ms each way plus the extra delay each way, with tolerance for a busy machine.
        assert!(best >= min && best < min + ms(10), "host pair {number}: {best}");
    }
    let certificate = emulation.finish().unwrap();
    assert_eq!(certificate.up.packets_out, 10);
    assert_sane(&certificate);
}

pub fn hops_follow_one_another_and_each_has_its_own_queue() {
    let hop = |text: &str| text.parse().unwrap();
    let hops = [
        hop("rate=1Gbit/s delay=5ms buffer=1MB"),
        hop("up.rate=100kbit/s down.rate=1Gbit/s delay=3ms buffer=20pkt"),
    ];
    let emulation = Emulation::start_chain(&hops, &[]).unwrap();
    let (near, far) = (udp(emulation.near()), udp(emulation.far()));
    let sent = clock::now();
    near.send_to(b"ping", echo_port(emulation.far())).unwrap();
    let (_, from) = far.recv_from(&mut [0; 16]).unwrap();
    far.send_to(b"pong", from).unwrap();
    near.recv_from(&mut [0; 16]).unwrap();
    // 8 ms each way, and 32 bytes at 100 kbit/s: 2.56 ms.
    let rtt = clock::now().since(sent);
    assert!(rtt >= Duration::from_micros(18_560), "{rtt} is faster than the path");
    drop(near);
    let took = burst(&emulation, 100, 1000);
    // They reach the second hop 5 ms later.
    clock::sleep_until(clock::now() + Duration::from_millis(60));
    let certificate = emulation.finish().unwrap();
    // 80 ms for each: the second hop's buffer accepts 20.
    assert_20_found_room(certificate.up.dropped_by_buffer, took, &certificate);
    assert_eq!(certificate.up.queue_max, Bytes::new(20_000));
    assert_eq!(certificate.down.packets_out, 1);
    assert_sane(&certificate);
}

pub fn a_host_pair_crosses_the_hops_that_it_names_alone() {
    let hop = |text: &str| text.parse().unwrap();
    let hops =
        [hop("rate=1Gbit/s delay=5ms buffer=1MB"), hop("rate=1Gbit/s delay=30ms buffer=1MB")];
    let pair = |hops| HostPair { hops: Some(hops), ..HostPair::default() };
    let emulation = Emulation::start_chain(&hops, &[pair((0, 0)), pair((0, 1))]).unwrap();
    let ms = Duration::from_millis;
    for (number, min, max) in [(0, ms(10), ms(60)), (1, ms(70), ms(300))] {
        let best = min_round_trip(&emulation, number);
        assert!(best >= min && best < max, "host pair {number}: {best}");
    }
    assert_sane(&emulation.finish().unwrap());
}

pub fn too_many_host_pairs_are_refused() {
    let path = "rate=100Mbit/s rtt=10ms buffer=100kB".parse().unwrap();
    let Err(error) = Emulation::start_with(&path, &[HostPair::default(); 1001]) else { panic!() };
    assert!(error.to_string().contains("1001 pairs of hosts"), "{error}");
}

pub fn commands_run_on_their_side() {
    let emulation = emulate("rate=100Mbit/s rtt=2ms buffer=1MB");
    let mut outputs = Vec::new();
    for side in [emulation.near(), emulation.far()] {
        let mut command = Command::new("sh");
        command.args(["-c", "cat /proc/net/fib_trie; echo $SWEETSPOT_NEAR $SWEETSPOT_FAR"]);
        let child = side.spawn(command.stdout(Stdio::piped())).unwrap();
        outputs.push(String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap());
    }
    let local = |outputs: &str, address: Ipv4Addr| {
        let address = format!("|-- {address}\n");
        outputs.split(&address).skip(1).any(|rest| rest.trim_start().starts_with("/32 host LOCAL"))
    };
    let (near, far) = (emulation.near().address(), emulation.far().address());
    assert!(local(&outputs[0], near) && !local(&outputs[0], far), "{}", outputs[0]);
    assert!(local(&outputs[1], far) && !local(&outputs[1], near), "{}", outputs[1]);
    assert!(outputs.iter().all(|s| s.trim_end().ends_with(&format!("{near} {far}"))));
}

pub fn hosts_receive_on_other_processors_than_the_one_that_carries() {
    let processors = scheduling::allowed_processors().unwrap();
    let [others @ .., carrier] = &processors[..] else { return };
    if *carrier >= 32 {
        // The kernel's different errors would have to be distinguished.
        return;
    }
    let emulation = emulate("rate=100Mbit/s rtt=2ms buffer=1MB");
    for side in [emulation.near(), emulation.far()] {
        let read = || std::fs::read_to_string("/proc/sys/net/core/rps_default_mask");
        // Kernels before 6.3 do not have it.
        let Ok(text) = side.run(read).unwrap() else { return };
        let last_word = text.trim().rsplit(',').next().unwrap();
        let mask = u32::from_str_radix(last_word, 16).unwrap();
        assert_eq!(mask, others.iter().fold(0, |mask, processor| mask | 1 << processor), "{text}");
    }
}

pub fn a_missing_command_is_named() {
    let emulation = emulate("rate=100Mbit/s rtt=2ms buffer=1MB");
    let error = emulation.near().spawn(&mut Command::new("no-such-program")).unwrap_err();
    assert!(matches!(error, EmulatorError::Command { .. }));
    assert!(error.to_string().contains("cannot run \"no-such-program\""), "{error}");
}

pub fn the_certificate_is_stable_json() {
    let emulation = emulate("rate=100Mbit/s rtt=2ms buffer=125kB");
    transfer(&emulation, 10_000);
    let certificate = emulation.finish().unwrap();
    let json = serde_json::to_value(&certificate).unwrap();
    assert!(json["verdict"]["trust"].is_boolean());
    assert!(json["verdict"]["reasons"].is_array());
    assert_eq!(json["up"]["asked_bps"], 100_000_000);
    assert_eq!(json["up"]["buffer"], "125 kB");
    assert_eq!(json["up"]["packets_out"], certificate.up.packets_out);
    assert_eq!(json["up"]["lateness"]["p99_s"], certificate.up.lateness.p99.unwrap().as_secs_f64());
    assert_eq!(json["up"]["lateness"]["buckets"][0]["up_to_s"], 1e-5);
    assert!(certificate.to_string().lines().all(|line| line.chars().count() <= 80));
}
