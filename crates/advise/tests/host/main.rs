//! The mistakes that the host advice must find, and the changes that it recommends.

use proptest::prelude::*;
use sweetspot_advise::AdviceError;
use sweetspot_advise::host::{
    Device, HostAdvice, HostQuestion, Listener, PathEnd, Snapshot, Sysctls, advise,
};
use sweetspot_advise::window::{self, LossResponse, WindowQuestion, WindowSettings};
use sweetspot_units::{Bytes, Duration, Rate};

mod answer;
mod memory;

const GOOD: &str = "
net.core.rmem_max = 268435456
net.core.wmem_max = 268435456
net.ipv4.tcp_rmem = 4096 131072 268435456
net.ipv4.tcp_wmem = 4096 16384 268435456
net.ipv4.tcp_mem = 287898 383867 575796
net.ipv4.tcp_moderate_rcvbuf = 1
net.ipv4.tcp_no_metrics_save = 1
net.ipv4.tcp_sack = 1
net.ipv4.tcp_timestamps = 1
net.ipv4.tcp_window_scaling = 1
net.ipv4.tcp_adv_win_scale = 1
net.ipv4.tcp_mtu_probing = 0
net.ipv4.tcp_available_congestion_control = reno cubic bbr
net.ipv4.tcp_congestion_control = cubic
";

/// A well-configured host with 24 GB, except for `changes`.
fn host(changes: &str) -> Snapshot {
    let settings = format!("{GOOD}{changes}");
    Snapshot {
        kernel: "6.18".parse().ok(),
        sysctls: Sysctls::read(&settings).unwrap(),
        memory: Some(Bytes::new(24_000_000_000)),
        page: Some(Bytes::new(4096)),
        ..Snapshot::default()
    }
}

fn path() -> Option<(Rate, Duration)> {
    Some((Rate::from_mbit_per_second(10_000), Duration::from_millis(80)))
}

/// The rate on the link for `payload` per RTT of the path; 52 of each 1500 B are headers.
fn carried(payload: u64) -> f64 {
    payload as f64 * 8.0 / 0.080 * 1500.0 / 1448.0
}

fn ask(here: Snapshot) -> HostAdvice {
    advise(&HostQuestion { here, peer: None, path: path(), path_mtu: None, connections: 1 })
        .unwrap()
}

fn found(changes: &str) -> Vec<String> {
    ask(host(changes)).findings.into_iter().map(|f| f.what).collect()
}

#[test]
fn a_good_host_is_left_alone() {
    let advice = ask(host(""));
    assert!(advice.findings.is_empty(), "{:?}", advice.findings);
    assert!(advice.text(false, 80).replace('\n', " ").contains("no setting limits a flow"));
}

#[test]
fn a_sender_cap_is_reported_with_its_gain() {
    let advice = ask(host("net.ipv4.tcp_wmem = 4096 16384 4194304\n"));
    let f = &advice.findings[0];
    // The program refills the buffer when a third of it is free. 2,796,203 B less 832 B for each of the 81.92 segments are
    // 2,728,045 B of payload per 80 ms: 272.8 Mbit/s, or 282.6 with headers. The gain is 10 Gbit/s less that, 9717.4 Mbit/s.
    assert_eq!(f.what, "net.ipv4.tcp_wmem");
    assert_eq!(f.gain.unwrap().bits_per_second() / 1_000_000, 9_717);
    // The send buffer is twice the payload of C T = 100 MB.
    assert_eq!(f.command, "sysctl -w net.ipv4.tcp_wmem=\"4096 16384 193066666\"");
    let sending = &advice.directions[1];
    assert_eq!((sending.name, sending.rate.bits_per_second() / 100_000), ("sending", 2_826));
}

#[test]
fn law_one_end_without_window_scaling_caps_both_windows_at_16_bits() {
    let off = "net.ipv4.tcp_window_scaling = 0\n";
    let name = "net.ipv4.tcp_window_scaling";
    // Both SYNs must have the option (RFC 7323, section 2.2). The window is 65,535 B of payload per 80 ms.
    let rate = Rate::from_f64(carried(65_535));
    let of = |here, peer| {
        let q = HostQuestion { here, peer, path: path(), path_mtu: None, connections: 1 };
        advise(&q).unwrap()
    };
    for (end, advice) in [
        (PathEnd::Peer, of(host(""), Some(host(off)))),
        (PathEnd::Here, of(host(off), Some(host("")))),
        (PathEnd::Here, of(host(off), None)),
    ] {
        for direction in &advice.directions {
            let cap = direction.cap.as_ref().unwrap();
            assert_eq!((cap.what.as_str(), cap.end, direction.rate), (name, end, rate));
        }
        let [finding] = &advice.findings[..] else { panic!("{:?}", advice.findings) };
        assert_eq!(finding.gain, Some(path().unwrap().0 - rate), "the finding and the lines agree");
    }
}

#[test]
fn law_host_and_window_advice_agree_on_the_send_buffer() {
    let wmem = |bytes: u64| format!("net.ipv4.tcp_wmem = 4096 16384 {bytes}\n");
    let kernel = "6.18".parse().unwrap();
    for mbit in [100, 500, 10_000] {
        let rate = Rate::from_mbit_per_second(mbit);
        let rtt = path().unwrap().1;
        let on = |bytes| {
            let path = Some((rate, rtt));
            let here = host(&wmem(bytes));
            advise(&HostQuestion { here, peer: None, path, path_mtu: None, connections: 1 })
                .unwrap()
        };
        let window = on(1).window.unwrap();
        let wanted =
            WindowSettings::for_window(window, Bytes::new(1448), kernel).unwrap().tcp_wmem_max;
        // With that buffer nothing limits the flow. A buffer of one BDP limits it between refills, so that buffer is advised.
        assert!(on(wanted.get()).findings.is_empty());
        let payload = (rate * rtt).get() * 1448 / 1500;
        let [finding] = &on(payload).findings[..] else { panic!("{mbit}") };
        assert_eq!(finding.wanted, format!("4096 16384 {}", wanted.get()));
    }
}

#[test]
fn law_metrics_saving_needs_no_change_if_ssthresh_is_not_saved() {
    let none = "net.ipv4.tcp_no_metrics_save = 0\n";
    let with = |kept: u8| found(&format!("{none}net.ipv4.tcp_no_ssthresh_metrics_save = {kept}\n"));
    assert!(with(1).is_empty());
    assert_eq!(with(0), ["net.ipv4.tcp_no_ssthresh_metrics_save"]);
    // Kernels without that setting save either all metrics or none.
    assert_eq!(found(none), ["net.ipv4.tcp_no_metrics_save"]);
    let neither = "net.ipv4.tcp_no_ssthresh_metrics_save = 0\n";
    assert!(found(neither).is_empty(), "without metrics there is no ssthresh");
}

#[test]
fn each_common_misconfiguration_is_found() {
    let mistakes = [
        ("net.ipv4.tcp_rmem = 4096 131072 6291456", "net.ipv4.tcp_rmem"),
        ("net.core.rmem_max = 212992", "net.core.rmem_max"),
        ("net.core.wmem_max = 212992", "net.core.wmem_max"),
        ("net.ipv4.tcp_mem = 786432000 1048576000 1610612736", "net.ipv4.tcp_mem"),
        ("net.ipv4.tcp_timestamps = 0", "net.ipv4.tcp_timestamps"),
        ("net.ipv4.tcp_sack = 0", "net.ipv4.tcp_sack"),
        ("net.ipv4.tcp_window_scaling = 0", "net.ipv4.tcp_window_scaling"),
        ("net.ipv4.tcp_moderate_rcvbuf = 0", "net.ipv4.tcp_moderate_rcvbuf"),
        ("net.ipv4.tcp_adv_win_scale = 2", "net.ipv4.tcp_adv_win_scale"),
        ("net.ipv4.tcp_no_metrics_save = 0", "net.ipv4.tcp_no_metrics_save"),
        ("net.ipv4.tcp_congestion_control = reno", "net.ipv4.tcp_congestion_control"),
    ];
    for (change, what) in mistakes {
        assert_eq!(found(&format!("{change}\n")), [what], "{change}");
    }
}

#[test]
fn adv_win_scale_is_not_a_finding_on_kernels_that_use_it() {
    let mut old = host("net.ipv4.tcp_adv_win_scale = 2\n");
    old.kernel = "5.15".parse().ok();
    assert!(ask(old).findings.is_empty());
}

#[test]
fn a_16_bit_window_is_found_without_a_path() {
    let here = host("net.ipv4.tcp_rmem = 4096 32768 60000\nnet.core.rmem_max = 60000\n");
    let advice =
        advise(&HostQuestion { here, peer: None, path: None, path_mtu: None, connections: 1 })
            .unwrap();
    assert!(advice.findings[0].why.contains("window scale of 0"));
}

#[test]
fn every_device_problem_is_found() {
    let device = Device {
        name: "eth0".into(),
        speed: Some(Rate::from_mbit_per_second(1000)),
        mtu: Some(Bytes::new(9000)),
        queue_length: Some(100),
        byte_queue_limits: Some(false),
        qdisc: Some("pfifo_fast".into()),
        receive_ring: Some((256, 4096)),
        transmit_ring: None,
        tso: Some(false),
        gso: Some(true),
        gro: Some(true),
    };
    let here = Snapshot { device: Some(device), ..host("") };
    let what: Vec<String> = ask(here).findings.into_iter().map(|f| f.what).collect();
    let wanted = [
        "speed of eth0",
        "net.ipv4.tcp_mtu_probing",
        "qdisc of eth0",
        "byte queue limits of eth0",
        "receive ring of eth0",
        "tso of eth0",
    ];
    assert_eq!(what, wanted);
}

/// fq has its own limit: if it replaces the queue, the old queue's length does not matter.
#[test]
fn a_short_txqueuelen_is_reported_unless_fq_replaces_it() {
    let device = Device {
        qdisc: Some("pfifo_fast".to_owned()),
        queue_length: Some(100),
        mtu: None,
        ..device()
    };
    let found = |path| {
        let here = Snapshot { device: Some(device.clone()), ..host("") };
        let q = HostQuestion { here, peer: None, path, path_mtu: None, connections: 1 };
        advise(&q).unwrap().findings.into_iter().map(|f| f.what).collect::<Vec<_>>()
    };
    assert_eq!(found(None), ["txqueuelen of eth0"]);
    assert_eq!(found(path()), ["qdisc of eth0"]);
}

#[test]
fn advice_names_the_limiting_end() {
    let peer = Some(host("net.ipv4.tcp_rmem = 4096 131072 6291456\n"));
    let q = HostQuestion { here: host(""), peer, path: path(), path_mtu: None, connections: 1 };
    let advice = advise(&q).unwrap();
    let cap = advice.directions[1].cap.as_ref().unwrap();
    assert_eq!((cap.what.as_str(), cap.end), ("net.ipv4.tcp_rmem", PathEnd::Peer));
    assert_eq!(advice.findings[0].end, PathEnd::Peer);
    // The file is for this host, so the peer's changes are not in it.
    assert!(!advice.sysctl_file().contains("tcp_rmem"));
}

#[test]
fn the_sysctl_file_matches_the_findings_and_reads_back() {
    let advice = ask(host("net.core.rmem_max = 212992\nnet.ipv4.tcp_sack = 0\n"));
    let file = Sysctls::read(&advice.sysctl_file()).unwrap();
    assert_eq!(file.number("net.ipv4.tcp_sack"), Some(1));
    // Half of the memory is window, but the kernel doubles the request: it equals the payload of 100 MB.
    assert_eq!(file.number("net.core.rmem_max"), Some(96_533_333));
    // Comments in the file show the old and the new values.
    let text = advice.sysctl_file();
    assert!(
        text.starts_with("# Written by sweetspot advise host, for 10 Gbit/s x 80 ms.\n"),
        "{text}"
    );
    assert!(text.contains("# Was 212992: ") && text.contains("# Was 0: "), "{text}");
    let same = ask(host(&text)).sysctl_file();
    assert!(same.ends_with("\n# No sysctl of this host needs a change.\n"), "{same}");
}

#[test]
fn json_findings_have_the_documented_keys() {
    let json = ask(host("net.core.rmem_max = 212992\n")).json();
    let finding = &json["findings"][0];
    for key in ["what", "now", "wanted", "gain_bps", "cost_bytes", "command"] {
        assert!(!finding[key].is_null(), "{key}");
    }
}

#[test]
fn impossible_paths_are_rejected_with_the_reason() {
    let ask = |rate, ms, connections| {
        let path = Some((Rate::from_mbit_per_second(rate), Duration::from_millis(ms)));
        let q = HostQuestion { here: host(""), peer: None, path, path_mtu: None, connections };
        advise(&q).unwrap_err().to_string()
    };
    assert!(ask(0, 1, 1).contains("rate 0 bit"));
    assert!(ask(1, 0, 1).contains("rtt 0"));
    assert!(ask(1, 1, 0).contains("connections 0"));
}

#[test]
fn advice_is_per_connection_if_one_window_cannot_fill_the_path() {
    // C T is 125 GB, 120.7 GB without headers. The largest window, 65,535 x 2^14 B, is 1/112.4 of that: 113 connections.
    let path = Some((Rate::from_mbit_per_second(1_000_000), Duration::from_secs(1)));
    let q = HostQuestion { here: host(""), peer: None, path, path_mtu: None, connections: 1 };
    let advice = advise(&q).unwrap();
    // 125e9 / 113 x 1448 / 1500.
    assert_eq!(advice.window, Some(Bytes::new(1_067_846_607)));
    let text = advice.text(false, 80);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains(
            "1.068 GB per connection (MTU 1500 B); it takes 113 connections to fill the path,"
        ),
        "{text}"
    );
    // With enough memory, 819 GB for 113 times 2.1 GB, no setting is at fault.
    let large = host(
        "net.ipv4.tcp_rmem = 4096 131072 2147483647\nnet.ipv4.tcp_wmem = 4096 16384 2147483647\n\
         net.ipv4.tcp_mem = 100000000 200000000 300000000\n",
    );
    let here = Snapshot { memory: Some(Bytes::new(2_000_000_000_000)), ..large };
    let text = advise(&HostQuestion { here, ..q }).unwrap().text(false, 80);
    assert!(
        text.replace('\n', " ").contains("receive   8.85 Gbit/s: no setting limits a flow"),
        "{text}"
    );
}

#[test]
fn only_commands_exceed_80_columns() {
    let bad = host("net.core.rmem_max = 1\nnet.ipv4.tcp_mem = 1 2 3\nnet.ipv4.tcp_sack = 0\n");
    let text = ask(bad).text(true, 80);
    assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
}

#[test]
fn advice_states_the_rate_lost_to_so_rcvbuf() {
    let asked = Some(Bytes::new(1_000_000));
    let advice = ask(Snapshot { asked_receive_buffer: asked, ..host("") });
    let f = &advice.findings[0];
    // The kernel doubles the request, and half of the result is window: 1 MB per 80 ms = 100 Mbit/s, with headers 103.6.
    assert_eq!(f.what, "SO_RCVBUF of the program");
    assert_eq!(f.gain, Some(Rate::from_f64(10e9 - carried(1_000_000))));
    // The answer's gain has the same number, and says where to make the change.
    let gain = format!("{} receiving (in the program)", f.gain.unwrap());
    let answer = advice.answer(80).replace("\n          ", " ");
    assert!(answer.contains(&gain), "{answer}");
    // rmem_max cuts the request first.
    let cut = host("net.core.rmem_max = 212992\n");
    let advice = ask(Snapshot { asked_receive_buffer: asked, ..cut });
    let why = advice.findings.iter().find(|f| f.what.contains("the program")).map(|f| &f.why);
    assert!(why.unwrap().contains("rmem_max cuts to 213 kB"), "{why:?}");
}

#[test]
fn a_listener_with_its_own_receive_buffer_is_found() {
    let listener = |address: &str, bytes| Listener {
        address: address.to_owned(),
        receive_buffer: Bytes::new(bytes),
    };
    let listeners = vec![listener("0.0.0.0:22", 131_072), listener("0.0.0.0:5201", 425_984)];
    let advice = ask(Snapshot { listeners, ..host("") });
    assert_eq!(advice.findings.len(), 1, "{:?}", advice.findings);
    assert!(advice.findings[0].what.ends_with("0.0.0.0:5201"));
    // 212,992 B per 80 ms = 21.3 Mbit/s, with headers 22.06.
    assert_eq!(advice.findings[0].gain.unwrap().bits_per_second() / 100_000, 99_779);
}

fn device() -> Device {
    Device {
        name: "eth0".to_owned(),
        mtu: Some(Bytes::new(9000)),
        speed: Some(Rate::from_mbit_per_second(100_000)),
        ..Device::default()
    }
}

#[test]
fn packets_larger_than_the_path_mtu_are_found() {
    let here = Snapshot { device: Some(device()), ..host("net.ipv4.tcp_mtu_probing = 1\n") };
    let ask = |mtu| {
        let path_mtu = Some(Bytes::new(mtu));
        let here = here.clone();
        advise(&HostQuestion { here, peer: None, path: None, path_mtu, connections: 1 })
    };
    // Other paths keep the device's packets.
    let found = &ask(1500).unwrap().findings[0];
    assert_eq!(found.what, "MTU of the route");
    assert!(found.command.starts_with("ip route change DEST mtu 1500 "), "{found:?}");
    assert_eq!(found.undo(), None);
    assert!(ask(9000).unwrap().findings.is_empty());
    assert!(ask(100).unwrap_err().to_string().contains("path_mtu 100 B"));
    let device = Device { mtu: Some(Bytes::new(100)), ..device() };
    let peer = Some(Snapshot { device: Some(device), ..host("") });
    let q = HostQuestion { here: host(""), peer, path: None, path_mtu: None, connections: 1 };
    assert!(advise(&q).unwrap_err().to_string().contains("peer_mtu 100 B"));
}

/// 10 Gbit/s x 80 ms = 100 MB; (MTU - 52) / MTU of it is payload.
#[test]
fn law_the_smallest_mtu_known_or_the_one_advised_counts_and_is_named() {
    let of = |mtu: u64| Some(Device { mtu: Some(Bytes::new(mtu)), ..device() });
    let ask = |ours: u64, path_mtu: Option<u64>, theirs: Option<u64>| {
        let here = Snapshot { device: of(ours), ..host("net.ipv4.tcp_mtu_probing = 1\n") };
        let peer = theirs.map(|mtu| Snapshot { device: of(mtu), ..Snapshot::default() });
        let path_mtu = path_mtu.map(Bytes::new);
        advise(&HostQuestion { here, peer, path: path(), path_mtu, connections: 1 }).unwrap()
    };
    // A loopback device says nothing about a path.
    for (ours, path_mtu, theirs, smallest, advised) in [
        (1400, None, None, 1400, 1400),
        (1400, Some(9000), None, 1400, 9000),
        (9000, Some(1400), None, 1400, 1400),
        (9000, Some(4000), Some(1400), 1400, 4000),
        (1400, None, Some(9000), 1400, 9000),
        (65_536, None, None, 1500, 1500),
    ] {
        let advice = ask(ours, path_mtu, theirs);
        let filled = 1e8 * (advised as f64 - 52.0) / advised as f64;
        let window = advice.window.unwrap().as_f64();
        assert!((window - filled).abs() <= 1.0, "{advised}: {window} {filled}");
        let once = if advised > smallest { ", once raised" } else { "" };
        let words = format!(" per connection (MTU {advised} B{once}) fills the path\n");
        assert!(advice.answer(100).contains(&words), "{}", advice.answer(100));
        let json = advice.json();
        assert_eq!(
            (&json["mtu_bytes"], &json["window_mtu_bytes"]),
            (&smallest.into(), &advised.into())
        );
    }
    let answer = ask(1400, Some(9000), None).answer(80);
    let by_hand = "by hand   ip link set eth0 mtu 9000   # if this device and the peer's take it\n\
        undo      ip link set eth0 mtu 1400\n";
    assert!(answer.contains(by_hand), "{answer}");
    // The path carries larger packets than the device sends.
    let small = ask(1400, Some(9000), None);
    let found = small.findings.iter().find(|f| f.what == "MTU of eth0").unwrap();
    assert_eq!((found.now.as_str(), found.wanted.as_str()), ("1400", "9000"));
    // The peer does not accept larger packets.
    assert!(ask(1400, Some(9000), Some(1400)).findings.iter().all(|f| f.what != "MTU of eth0"));
}

#[test]
fn a_transmit_ring_that_drains_between_interrupts_is_found() {
    let ask = |now| {
        let device = Device { transmit_ring: Some((now, 4096)), ..device() };
        ask(Snapshot { device: Some(device), ..host("net.ipv4.tcp_mtu_probing = 1\n") })
    };
    // At 100 Gbit/s, 64 x 9000 B take 46 us; 100 us are 138.9 packets, rounded up to 256.
    let found = ask(64).findings;
    assert_eq!(
        (found[0].what.as_str(), found[0].wanted.as_str()),
        ("transmit ring of eth0", "256")
    );
    assert!(ask(256).findings.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// A host's settings allow exactly the window that the window advice recommends for the same path. If it recommends none,
    /// they allow TCP's initial window: ten packets with 1448 B of payload.
    #[test]
    fn law_host_and_window_advice_agree_on_the_window(
        kbit in 100_u64..100_000_000,
        us in 100_u64..1_000_000,
        mtu in proptest::option::of(576_u64..9001),
    ) {
        let (rate, rtt) = (Rate::from_bits_per_second(kbit * 1000), Duration::from_micros(us));
        let (kernel, mtu) = ("6.18".parse().unwrap(), mtu.map(Bytes::new));
        let question = WindowQuestion {
            rate,
            rtt,
            buffer: None,
            cross: None,
            loss: None,
            congestion: LossResponse::Cubic,
            mtu: mtu.unwrap_or(window::COMMON_MTU),
            kernel,
        };
        let (held, connections) = match window::advise(&question) {
            Ok(advice) => (advice.recommended.window.unwrap(), advice.connections),
            Err(AdviceError::NoWindowHelps { initial, .. }) => (question.payload(initial), 1),
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        };
        let on = |changes: String| {
            // The memory is unknown, so it limits nothing.
            let here = Snapshot { memory: None, page: None, ..host(&changes) };
            let path = Some((rate, rtt));
            advise(&HostQuestion { here, peer: None, path, path_mtu: mtu, connections: 1 }).unwrap()
        };
        let settings = WindowSettings::for_window(held, question.mss(), kernel).unwrap();
        let (rmem, wmem) = (settings.tcp_rmem_max.get(), settings.tcp_wmem_max.get());
        let with = |rmem: u64, wmem: u64| on(format!(
            "net.ipv4.tcp_rmem = 4096 131072 {rmem}\nnet.ipv4.tcp_wmem = 4096 16384 {wmem}\n"
        ));
        let exact = with(rmem, wmem);
        prop_assert_eq!(exact.window, Some(held));
        let json = exact.json();
        prop_assert_eq!(json["window_bytes"].as_u64(), Some(held.get()));
        prop_assert_eq!(json["connections"].as_u64(), Some(connections));
        let buffers = |advice: &HostAdvice| -> Vec<(String, String)> {
            let all = advice.findings.iter().filter(|f| f.what.ends_with("mem"));
            let last = |f: &str| f.rsplit(' ').next().unwrap_or_default().to_owned();
            all.filter(|f| f.what != "net.ipv4.tcp_mem")
                .map(|f| (f.what.clone(), last(&f.wanted)))
                .collect()
        };
        prop_assert_eq!(buffers(&exact), []);
        let whole = Rate::from_f64(rate.as_f64() / connections as f64);
        for direction in &exact.directions {
            prop_assert_eq!(direction.rate, whole);
        }
        // Half of these settings limits the flow unless the path needs fewer than ten packets; the exact values are then advised.
        if rate * rtt >= question.mtu * 20 {
            let half = buffers(&with(rmem / 2, wmem / 2));
            let wanted = [("rmem", rmem), ("wmem", wmem)];
            prop_assert_eq!(half, wanted.map(|(end, n)| (format!("net.ipv4.tcp_{end}"), n.to_string())));
        }
    }
}
