//! `tcp_mem` and the cost in memory.

use sweetspot_advise::host::{HostAdvice, HostQuestion, Snapshot, advise};
use sweetspot_units::{Bytes, Duration, Rate};

use crate::{carried, host, path};

/// 20,000 pages of 4096 B: 81.92 MB, up to which the kernel shrinks no buffer.
const LITTLE: &str = "net.ipv4.tcp_mem = 15000 20000 30000\n";

fn of(here: Snapshot, connections: u64) -> HostAdvice {
    advise(&HostQuestion { here, peer: None, path: path(), path_mtu: None, connections }).unwrap()
}

/// tcp_wmem[2] of 4 MiB carries 282.6 Mbit/s over 80 ms (2,728,045 B of payload). 20 connections have 500 Mbit/s of 10 Gbit/s each, so that
/// 217.3 Mbit/s are missing; 100 have 100 Mbit/s, and 1000 10 Mbit/s.
#[test]
fn law_a_connection_gains_at_most_its_share_of_the_path() {
    let here = host("net.ipv4.tcp_wmem = 4096 16384 4194304\n");
    let few = of(here.clone(), 20);
    let gain = Rate::from_f64(500e6 - carried(2_728_045));
    let found = few.findings.iter().find(|f| f.what == "net.ipv4.tcp_wmem").unwrap();
    assert!(found.gain.unwrap().bits_per_second().abs_diff(gain.bits_per_second()) < 1000);
    // 5 MB of packets each, 1448 of 1500 B payload; twice that is memory.
    assert!(found.command.ends_with("4096 16384 9653334\""), "{}", found.command);
    assert_eq!(few.json()["connections"], 20);
    let answer = few.answer(80).replace("\n          ", " ");
    let words = "4.827 MB for each of 20 connections (MTU 1500 B), which fill the path together";
    assert!(answer.contains(words), "{answer}");
    for connections in [100, 1000] {
        let many = of(here.clone(), connections);
        assert!(many.findings.is_empty(), "{:?}", many.findings);
        let part = 10_000_000_000 / connections;
        assert!(many.directions.iter().all(|d| d.rate.bits_per_second() == part));
    }
}

/// One connection needs 193 MB, more than half of 300 MB. 81.92 MB of memory are a window of 40.96 MB, 4.243 Gbit/s; a send buffer of 4 MiB
/// carries less.
#[test]
fn advice_names_memory_as_the_limit_and_still_raises_smaller_buffers() {
    let little = |changes: &str| Snapshot {
        memory: Some(Bytes::new(300_000_000)),
        ..host(&format!("{LITTLE}{changes}"))
    };
    let advice = of(little(""), 1);
    for direction in &advice.directions {
        let cap = direction.cap.as_ref().unwrap();
        assert_eq!((cap.what.as_str(), cap.window.get()), ("net.ipv4.tcp_mem", 40_960_000));
    }
    let text = advice.text(false, 80).replace("\n          ", " ");
    assert!(text.contains("the windows together exceed half of the host's"), "{text}");
    // That note is no change.
    assert!(text.contains("\nnote ") && text.contains("\nchanges   no setting helps\n"), "{text}");
    assert!(!text.contains("\ngain") && !text.contains("\nset "), "{text}");
    let small = of(little("net.ipv4.tcp_wmem = 4096 16384 4194304\n"), 1);
    let found = small.findings.iter().find(|f| f.what == "net.ipv4.tcp_wmem").unwrap();
    let gain = carried(40_960_000) - carried(2_728_045);
    assert!((found.gain.unwrap().as_f64() / gain - 1.0).abs() < 1e-6, "{found:?}");
    let line = format!("gain      up to {} sending", found.gain.unwrap());
    assert!(small.answer(80).contains(&line), "{}", small.answer(80));
}

/// With 24 GB of memory a larger tcp_mem is enough. Each of 20 connections has 500 Mbit/s of the path, 212.2 Mbit/s by this memory.
#[test]
fn the_gain_from_a_larger_tcp_mem_is_per_connection() {
    let advice = of(host(LITTLE), 20);
    assert_eq!(advice.findings[0].what, "net.ipv4.tcp_mem");
    let gain = 500e6 - 500e6 * 81.92 / 193.066_67;
    assert!((advice.findings[0].gain.unwrap().as_f64() / gain - 1.0).abs() < 1e-4, "{advice:?}");
    let text = advice.text(false, 80);
    assert!(text.contains("net.ipv4.tcp_mem on this host limits each of"), "{text}");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("for each connection, if nothing else limits the flow"), "{text}");
}

#[test]
fn law_memory_advice_covers_all_connections_that_fill_the_path() {
    // 125 GB, 120.7 GB of them payload, in windows of at most 65,535 x 2^14 B: 113 connections of 125e9 / 113 x 1448 / 1500 B, or 226 of
    // half of that. Twice that is memory.
    let path = Some((Rate::from_mbit_per_second(1_000_000), Duration::from_secs(1)));
    let large =
        "net.ipv4.tcp_rmem = 4096 131072 134217728\nnet.ipv4.tcp_wmem = 4096 16384 2147483647\n";
    let here = Snapshot { memory: Some(Bytes::new(1_000_000_000_000)), ..host(large) };
    let of = |connections| {
        let (here, path) = (here.clone(), path);
        let q = HostQuestion { here, peer: None, path, path_mtu: None, connections };
        let findings = advise(&q).unwrap().findings;
        move |name: &str| findings.iter().find(|f| f.what == name).unwrap().clone()
    };
    for (connections, n, window) in
        [(1, 113_u64, 1_067_846_607_u64), (113, 113, 1_067_846_607), (226, 226, 533_923_304)]
    {
        let memory = n * 2 * window;
        let found = of(connections);
        let pages = found("net.ipv4.tcp_mem").wanted;
        let pressure: Vec<u64> = pages.split(' ').map(|n| n.parse().unwrap()).collect();
        assert_eq!(pressure[1], memory.div_ceil(4096), "{connections}");
        let more = memory - n * 134_217_728;
        assert_eq!(found("net.ipv4.tcp_rmem").cost, Some(Bytes::new(more)), "{connections}");
    }
}
