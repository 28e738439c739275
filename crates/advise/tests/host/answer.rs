//! The labelled lines of the host advice.

use sweetspot_advise::host::{Device, HostAdvice, HostQuestion, PathEnd, Snapshot, advise};
use sweetspot_units::{Bytes, Rate};

use crate::{ask, carried, device, host, path};

#[test]
fn the_answer_prints_sysctls_to_set_and_to_undo_the_change() {
    let text = ask(host("net.ipv4.tcp_wmem = 4096 16384 4194304")).answer(80);
    let after = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
    assert!(after("set       ").unwrap().starts_with("sysctl -w net.ipv4.tcp_wmem=\"4096 16384 "));
    let undo = "sysctl -w net.ipv4.tcp_wmem=\"4096 16384 4194304\"";
    assert_eq!(after("undo      "), Some(undo));
    assert!(after("send      ").unwrap().contains("tcp_wmem on this host limits a flow"), "{text}");
    // A limit applies to every connection on its own.
    let whole = ask(host("net.ipv4.tcp_wmem = 4096 16384 4194304")).text(false, 200);
    assert!(whole.contains(" of memory per connection\n"), "{whole}");
}

#[test]
fn law_undo_restores_the_current_value() {
    let device = Device {
        qdisc: Some("pfifo_fast".to_owned()),
        queue_length: Some(100),
        gro: Some(false),
        receive_ring: Some((256, 4096)),
        ..device()
    };
    let advice = ask(Snapshot { device: Some(device), ..host("net.ipv4.tcp_sack = 0") });
    let undone: Vec<String> = advice.findings.iter().filter_map(|f| f.undo()).collect();
    for command in [
        "sysctl -w net.ipv4.tcp_sack=\"0\"",
        "tc qdisc replace dev eth0 root pfifo_fast",
        "ethtool -K eth0 gro off",
        "ethtool -G eth0 rx 256",
    ] {
        assert!(undone.iter().any(|undo| undo == command), "{command}: {undone:?}");
    }
}

/// A badly configured host and peer. The host's device has no fq, and its packets do not fit the path.
fn bad_hosts() -> HostAdvice {
    let device =
        Some(Device { qdisc: Some("pfifo_fast".to_owned()), gro: Some(false), ..device() });
    let changes = "net.ipv4.tcp_sack = 0\nnet.ipv4.tcp_wmem = 4096 16384 4194304\n";
    let here = Snapshot { device, ..host(changes) };
    let peer = Some(host("net.ipv4.tcp_rmem = 4096 131072 6291456\n"));
    let path_mtu = Some(Bytes::new(1500));
    advise(&HostQuestion { here, peer, path: path(), path_mtu, connections: 1 }).unwrap()
}

/// The commands of `answer` under `name`.
fn block(answer: &str, name: &str) -> Vec<String> {
    let starts = |line: &&str| line.split_at(10).0.trim_end() != name;
    let lines = answer.lines().skip_while(starts).enumerate();
    let lines = lines.take_while(|(i, line)| *i == 0 || line.starts_with("          "));
    lines.map(|(_, line)| line.split_at(10).1.to_owned()).collect()
}

#[test]
fn law_every_command_appears_once_under_its_host_with_its_undo() {
    let advice = bad_hosts();
    let answer = advice.answer(80);
    for (end, set, undo) in
        [(PathEnd::Here, "set", "undo"), (PathEnd::Peer, "peer set", "peer undo")]
    {
        let all = || advice.findings.iter().filter(|f| f.end == end && !f.command.contains('#'));
        let commands: Vec<String> = all().map(|f| f.command.clone()).collect();
        assert!(!commands.is_empty());
        assert_eq!(block(&answer, set), commands);
        assert_eq!(block(&answer, undo), all().map(|f| f.undo().unwrap()).collect::<Vec<_>>());
    }
    let by_hand = block(&answer, "by hand");
    let conditional = advice.findings.iter().filter(|f| f.command.contains('#'));
    assert_eq!(by_hand, conditional.map(|f| f.command.clone()).collect::<Vec<_>>());
    assert!(by_hand[0].starts_with("ip route change "), "{answer}");
    let fq = "tc qdisc replace dev eth0 root fq".to_owned();
    assert!(block(&answer, "set").contains(&fq), "{answer}");
    // A change that depends on a condition is not repeated either.
    let text = advice.text(false, 80);
    for finding in &advice.findings {
        assert_eq!(text.matches(&finding.command).count(), 1, "{} {text}", finding.command);
    }
}

#[test]
fn advice_without_a_path_lists_the_skipped_checks() {
    let of = |here, path| {
        let q = HostQuestion { here, peer: None, path, path_mtu: None, connections: 1 };
        advise(&q).unwrap().answer(200)
    };
    let blind = of(host(""), None);
    let line = "checked   TCP options, tcp_mem; not socket buffers, which depend on the path: give --rate and --rtt\n";
    assert!(blind.contains(line), "{blind}");
    let whole = of(host(""), path());
    assert!(whole.contains("checked   socket buffers, TCP options, tcp_mem\n"), "{whole}");
    // A host with unknown settings does not count as good.
    assert!(of(Snapshot::default(), None).contains("checked   nothing"));
}

#[test]
fn unread_settings_limit_no_direction() {
    let advice = ask(Snapshot::default());
    assert!(advice.directions.iter().all(|direction| direction.cap.is_none()));
}

#[test]
fn the_answer_covers_the_requested_receive_buffer() {
    let advise_with_buffer = |bytes: u64| {
        let here = Snapshot { asked_receive_buffer: Some(Bytes::new(bytes)), ..host("") };
        ask(here)
    };
    let finding = &advise_with_buffer(100_000).json()["findings"][0];
    assert!(finding["command"].is_null(), "{finding}");
    assert!(
        finding["by_hand"].as_str().unwrap().starts_with("in the program: do not"),
        "{finding}"
    );
    // A window of the request: 100 kB over the RTT.
    let (small, large) = (advise_with_buffer(100_000), advise_with_buffer(1_000_000_000));
    let text = small.text(false, 80);
    assert!(
        text.starts_with("rcvbuf    SO_RCVBUF of 100 kB allows a window of 100 kB: "),
        "{text}"
    );
    assert!(text.contains("\nprogram   do not set SO_RCVBUF"), "{text}");
    assert_eq!(text.matches("do not set SO_RCVBUF").count(), 1, "{text}");
    let receiving = &small.directions[0];
    assert_eq!(receiving.cap.as_ref().unwrap().what, "SO_RCVBUF of the program");
    assert_eq!(receiving.rate, Rate::from_f64(carried(100_000)));
    assert!(large.text(false, 80).starts_with("rcvbuf    SO_RCVBUF of 1 GB"));
}

#[test]
fn the_gain_is_given_per_direction() {
    // Autotuning stops at half of tcp_rmem[2]: 16 MB in 80 ms.
    let receiving = 10e9 - carried(16_000_000);
    let text = ask(host("net.ipv4.tcp_rmem = 4096 131072 32000000")).answer(80);
    let gain = Rate::from_f64(receiving);
    let line = format!("gain      up to {gain} receiving, if nothing else limits the flow");
    assert!(text.contains(&line), "{text}");
    let both = "net.ipv4.tcp_rmem = 4096 131072 32000000\nnet.ipv4.tcp_wmem = 4096 16384 4194304";
    let advice = ask(host(both));
    let sending = advice.findings.iter().find(|f| f.what == "net.ipv4.tcp_wmem").unwrap().gain;
    let line = format!("{} receiving, {} sending", Rate::from_f64(receiving), sending.unwrap());
    assert!(advice.answer(80).contains(&line), "{}", advice.answer(80));
}

#[test]
fn a_host_whose_bbr_paces_by_itself_needs_no_fq() {
    let qdisc = |changes: &str, kernel: &str| {
        let device = Some(Device { qdisc: Some("pfifo_fast".to_owned()), ..device() });
        let here = Snapshot { device, kernel: kernel.parse().ok(), ..host(changes) };
        ask(here).findings.iter().any(|f| f.what.starts_with("qdisc"))
    };
    let bbr = "net.ipv4.tcp_congestion_control = bbr";
    assert!(!qdisc(bbr, "6.18") && qdisc("", "6.18"));
    // TCP paces by itself from 4.13 on.
    assert!(!qdisc(bbr, "4.13") && qdisc(bbr, "4.12"));
}

#[test]
fn the_answer_names_settings_missing_from_the_peers_list() {
    let answer = |settings: &str| {
        let peer = Snapshot::of_peer(settings, None, &host("")).unwrap();
        let q = HostQuestion {
            here: host(""),
            peer: Some(peer),
            path: path(),
            path_mtu: None,
            connections: 1,
        };
        let advice = advise(&q).unwrap();
        (advice.answer(200), advice.json()["missing_from_peer"].as_array().unwrap().len())
    };
    let (text, missing) = answer("net.ipv4.tcp_rmem = 4096 131072 6291456");
    let line = "the peer except net.ipv4.tcp_wmem, net.core.rmem_max, net.core.wmem_max, which its list of sysctls lacks";
    assert!(text.contains(line) && missing == 3, "{text}");
    let (text, missing) = answer(crate::GOOD);
    assert!(text.contains(", the peer\n") && missing == 0, "{text}");
}

#[test]
fn only_the_mtu_is_checked_of_a_peer_with_nothing_else_known() {
    let peer = Some(Snapshot { device: Some(device()), ..Snapshot::default() });
    let q = HostQuestion { here: host(""), peer, path: path(), path_mtu: None, connections: 1 };
    let text = advise(&q).unwrap().answer(200);
    assert!(text.contains(", tcp_mem, the peer's MTU\n"), "{text}");
}

#[test]
fn the_count_of_changes_accounts_for_a_written_file() {
    let mut advice = ask(host("net.ipv4.tcp_wmem = 4096 16384 4194304"));
    assert!(advice.answer(80).contains("changes   1; these commands last until reboot; to make"));
    advice.is_written = true;
    let text = advice.answer(200);
    assert!(text.contains("changes   1; to make this host's sysctls permanent, copy"), "{text}");
}

/// Linux's loopback device has an MTU of 65,536 B, but an IP packet has at most 65,535 B (RFC 791). No
/// change of the MTU is advised.
#[test]
fn the_loopback_device_gets_no_mtu_advice() {
    let lo = Device { name: "lo".to_owned(), mtu: Some(Bytes::new(65_536)), ..device() };
    let here = Snapshot { device: Some(lo), ..host("net.ipv4.tcp_mtu_probing = 0\n") };
    let path_mtu = Some(Bytes::new(65_535));
    let question = HostQuestion { here, peer: None, path: path(), path_mtu, connections: 1 };
    let found = advise(&question).unwrap().findings;
    assert!(found.iter().all(|f| !f.what.contains("mtu") && !f.what.contains("MTU")), "{found:?}");
}

#[test]
fn published_limits_appear_when_a_change_affects_them() {
    let compares =
        |changes: &str, explain| ask(host(changes)).text(explain, 80).contains("ESnet  ");
    for (changes, is_shown) in [
        ("", false),
        ("net.ipv4.tcp_sack = 0", false),
        ("net.ipv4.tcp_wmem = 4096 16384 4194304", true),
        ("net.core.rmem_max = 212992", true),
    ] {
        assert_eq!(compares(changes, false), is_shown, "{changes}");
        assert!(compares(changes, true), "{changes}");
    }
}

/// The smaller end decides for this path, whatever this device's MTU.
#[test]
fn law_a_local_mtu_is_never_lowered_for_a_peer() {
    let with = |mtu| Some(Device { mtu: Some(Bytes::new(mtu)), ..device() });
    for (ours, path_mtu, theirs, wanted) in
        [(1400, None, 576, "1400"), (9000, None, 1500, "9000"), (9000, Some(4000), 1500, "4000")]
    {
        let here = Snapshot { device: with(ours), ..host("net.ipv4.tcp_mtu_probing = 1\n") };
        let peer = Some(Snapshot { device: with(theirs), ..Snapshot::default() });
        let path_mtu = path_mtu.map(Bytes::new);
        let q = HostQuestion { here, peer, path: None, path_mtu, connections: 1 };
        let advice = advise(&q).unwrap();
        let found = advice.findings.iter().find(|f| f.what == "MTU of its device").unwrap();
        assert_eq!((found.end, found.wanted.as_str()), (PathEnd::Peer, wanted));
        assert!(advice.findings.iter().all(|f| !f.command.starts_with("ip link set")));
    }
}

#[test]
fn a_larger_mtu_is_not_advised_where_the_path_does_not_take_it() {
    let with = |mtu| Some(Device { mtu: Some(Bytes::new(mtu)), ..device() });
    let found = |path_mtu: Option<u64>| {
        let here = Snapshot { device: with(1400), ..host("net.ipv4.tcp_mtu_probing = 1\n") };
        let peer = Some(Snapshot { device: with(9000), ..Snapshot::default() });
        let path_mtu = path_mtu.map(Bytes::new);
        advise(&HostQuestion { here, peer, path: None, path_mtu, connections: 1 }).unwrap().findings
    };
    assert_eq!(found(None)[0].what, "MTU of eth0");
    assert_eq!(found(Some(9000))[0].wanted, "9000");
    assert!(found(Some(1400)).iter().all(|f| !f.what.starts_with("MTU of")));
}
