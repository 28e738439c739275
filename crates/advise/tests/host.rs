//! The mistakes that the host advice must know, and what it must say of them.

use sweetspot_advise::host::{Advice, Device, End, Question, Snapshot, Sysctls, advise};
use sweetspot_units::{Bytes, Duration, Rate};

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

/// A good host of 24 GB, but for `changes`.
fn host(changes: &str) -> Snapshot {
    let settings = format!("{GOOD}{changes}");
    Snapshot {
        kernel: "6.18".parse().ok(),
        sysctls: Sysctls::read(&settings).unwrap(),
        memory: Some(Bytes::new(24_000_000_000)),
        page: Some(Bytes::new(4096)),
        device: None,
    }
}

fn path() -> Option<(Rate, Duration)> {
    Some((Rate::from_mbit_per_second(10_000), Duration::from_millis(80)))
}

fn ask(here: Snapshot) -> Advice {
    advise(&Question { here, peer: None, path: path(), connections: 1 }).unwrap()
}

fn found(changes: &str) -> Vec<String> {
    ask(host(changes)).findings.into_iter().map(|f| f.what).collect()
}

#[test]
fn a_good_host_is_left_alone() {
    let advice = ask(host(""));
    assert!(advice.findings.is_empty(), "{:?}", advice.findings);
    assert!(advice.text(false).replace('\n', " ").contains("no setting caps a flow"));
}

#[test]
fn the_senders_hidden_cap_is_named_with_its_gain() {
    let advice = ask(host("net.ipv4.tcp_wmem = 4096 16384 4194304\n"));
    let f = &advice.findings[0];
    // 0.65 * 4,194,304 = 2,726,298 B over 80 ms = 272.6 Mbit/s; 10 Gbit/s less that.
    assert_eq!(f.what, "net.ipv4.tcp_wmem");
    assert_eq!(f.gain.unwrap().bits_per_second() / 1_000_000, 9_727);
    // Twice 1.05 C T = 210 MB.
    assert_eq!(f.command, "sysctl -w net.ipv4.tcp_wmem=\"4096 16384 210000000\"");
    let sending = &advice.directions[1];
    assert_eq!((sending.name, sending.rate.bits_per_second() / 100_000), ("sending", 2_726));
}

#[test]
fn each_common_mistake_is_known() {
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
fn adv_win_scale_counts_where_the_kernel_heeds_it() {
    let mut old = host("net.ipv4.tcp_adv_win_scale = 2\n");
    old.kernel = "5.15".parse().ok();
    assert!(ask(old).findings.is_empty());
}

#[test]
fn a_16_bit_window_is_known_without_a_path() {
    let here = host("net.ipv4.tcp_rmem = 4096 32768 60000\nnet.core.rmem_max = 60000\n");
    let advice = advise(&Question { here, peer: None, path: None, connections: 1 }).unwrap();
    assert!(advice.findings[0].why.contains("window scale of 0"));
}

#[test]
fn many_connections_need_memory_together() {
    let q = Question { here: host(""), peer: None, path: path(), connections: 20 };
    let advice = advise(&q).unwrap();
    // 20 x 210 MB = 4.2 GB above 383,867 pages = 1.57 GB, below half of 24 GB.
    assert_eq!(advice.findings[0].what, "net.ipv4.tcp_mem");
    let q = Question { connections: 1000, ..q };
    assert!(advise(&q).unwrap().findings[0].why.contains("use fewer"));
}

#[test]
fn the_device_is_judged() {
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
        "txqueuelen of eth0",
        "byte queue limits of eth0",
        "receive ring of eth0",
        "tso of eth0",
    ];
    assert_eq!(what, wanted);
}

#[test]
fn the_end_that_caps_is_named() {
    let peer = Some(host("net.ipv4.tcp_rmem = 4096 131072 6291456\n"));
    let q = Question { here: host(""), peer, path: path(), connections: 1 };
    let advice = advise(&q).unwrap();
    let cap = advice.directions[1].cap.as_ref().unwrap();
    assert_eq!((cap.what.as_str(), cap.end), ("net.ipv4.tcp_rmem", End::Peer));
    assert_eq!(advice.findings[0].end, End::Peer);
    // The file is for this host, so the peer's changes are not in it.
    assert!(!advice.sysctl_file().contains("tcp_rmem"));
}

#[test]
fn the_file_holds_what_the_findings_say_and_reads_back() {
    let advice = ask(host("net.core.rmem_max = 212992\nnet.ipv4.tcp_sack = 0\n"));
    let file = Sysctls::read(&advice.sysctl_file()).unwrap();
    assert_eq!(file.number("net.ipv4.tcp_sack"), Some(1));
    assert_eq!(file.number("net.core.rmem_max"), Some(105_000_000));
}

#[test]
fn findings_in_json_have_the_promised_keys() {
    let json = ask(host("net.core.rmem_max = 212992\n")).json();
    let finding = &json["findings"][0];
    for key in ["what", "now", "wanted", "gain_bps", "cost_bytes", "command"] {
        assert!(!finding[key].is_null(), "{key}");
    }
}

#[test]
fn impossible_paths_are_refused_in_words() {
    let ask = |rate, ms, connections| {
        let path = Some((Rate::from_mbit_per_second(rate), Duration::from_millis(ms)));
        let q = Question { here: host(""), peer: None, path, connections };
        advise(&q).unwrap_err().to_string()
    };
    assert!(ask(0, 1, 1).contains("--rate"));
    assert!(ask(1, 0, 1).contains("--rtt"));
    assert!(ask(1, 1, 0).contains("--connections"));
    assert!(ask(1_000_000, 1000, 1).contains("several connections"));
}

#[test]
fn no_line_but_a_command_is_longer_than_80_columns() {
    let bad = host("net.core.rmem_max = 1\nnet.ipv4.tcp_mem = 1 2 3\nnet.ipv4.tcp_sack = 0\n");
    let text = ask(bad).text(true);
    assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
}
