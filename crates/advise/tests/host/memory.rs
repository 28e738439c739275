//! `tcp_mem` and the cost in memory.

use sweetspot_advise::host::{HostQuestion, Snapshot, advise};
use sweetspot_units::{Bytes, Duration, Rate};

use crate::{host, path};

#[test]
fn many_connections_need_memory_together() {
    let q =
        HostQuestion { here: host(""), peer: None, path: path(), path_mtu: None, connections: 20 };
    let advice = advise(&q).unwrap();
    // 20 x 193 MB = 3.86 GB exceeds 383,867 pages = 1.57 GB, but not half of 24 GB.
    assert_eq!(advice.findings[0].what, "net.ipv4.tcp_mem");
    let q = HostQuestion { connections: 1000, ..q };
    assert!(advise(&q).unwrap().findings[0].why.contains("use fewer"));
}

/// Above 383,867 pages of 4096 B the kernel shrinks buffers. Each of 1000 connections has 1.572 MB, and half of it is window.
#[test]
fn memory_that_no_setting_can_add_is_the_limit_named() {
    let q = HostQuestion {
        here: host(""),
        peer: None,
        path: path(),
        path_mtu: None,
        connections: 1000,
    };
    let advice = advise(&q).unwrap();
    for direction in &advice.directions {
        let cap = direction.cap.as_ref().unwrap();
        assert_eq!(cap.what, "net.ipv4.tcp_mem", "{direction:?}");
        let share = 383_867 * 4096 / 1000 / 2;
        assert!(cap.window.get().abs_diff(share) <= 1, "{cap:?} {share}");
    }
    let text = advice.text(false, 80);
    assert!(text.contains("net.ipv4.tcp_mem on this host limits each of"), "{text}");
    assert!(
        !text.contains("gain") && !text.contains("tcp_rmem=") && !text.contains("\nset "),
        "{text}"
    );
    // For 20 connections, a larger tcp_mem suffices. Smaller buffers are then the limit, and each connection gains.
    let few = advise(&HostQuestion { connections: 20, ..q }).unwrap().text(false, 80);
    let few = few.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(few.contains("for each connection, if nothing else limits the flow"), "{few}");
}

#[test]
fn law_memory_is_counted_for_all_connections_that_fill_the_path() {
    // C T is 125 GB, 120.7 GB without headers. Windows have at most 65,535 x 2^14 B: 113 connections with 125e9 / 113 x 1448
    // / 1500 B each. The memory is twice the window.
    let all = 113 * 2 * 1_067_846_607_u64;
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
    for (connections, memory) in [(1, all), (113, all), (226, 2 * all)] {
        let found = of(connections);
        let pages = found("net.ipv4.tcp_mem").wanted;
        let pressure: Vec<u64> = pages.split(' ').map(|n| n.parse().unwrap()).collect();
        assert_eq!(pressure[1], memory.div_ceil(4096), "{connections}");
        let more = memory - memory / (2 * 1_067_846_607) * 134_217_728;
        assert_eq!(found("net.ipv4.tcp_rmem").cost, Some(Bytes::new(more)), "{connections}");
    }
}
