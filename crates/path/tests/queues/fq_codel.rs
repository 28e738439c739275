use sweetspot_path::{FqCodel, FqCodelConfig, Queue};
use sweetspot_units::{Bytes, Duration};

use crate::{Numbered, at, packet};

fn fq(limit: u64) -> FqCodel<Numbered> {
    FqCodel::new(FqCodelConfig::new(limit), 1)
}

fn of(flow: u64, number: u64, size: u64) -> Numbered {
    Numbered { flow, size, ..packet(number) }
}

fn push(fq: &mut FqCodel<Numbered>, millis: u64, p: Numbered) -> Result<(), Numbered> {
    fq.enqueue(at(millis), p, Bytes::new(p.size), Bytes::new(1000))
}

fn pop(fq: &mut FqCodel<Numbered>, millis: u64) -> Option<Numbered> {
    fq.dequeue(at(millis), &mut |_| {}).map(|(packet, _)| packet)
}

#[test]
fn flows_share_the_link_by_bytes_regardless_of_packet_size() {
    let mut fq = fq(10_000);
    for number in 0..600 {
        push(&mut fq, 0, of(1, number, 1500)).unwrap();
    }
    for number in 0..6000 {
        push(&mut fq, 0, of(2, number, 150)).unwrap();
    }
    let mut sent = [0u64; 3];
    while sent[1] + sent[2] < 1_000_000 {
        let packet = pop(&mut fq, 1).unwrap();
        sent[packet.flow as usize] += packet.size;
    }
    // Deficit round robin: the flows are never more than a quantum and a packet apart.
    assert!(sent[1].abs_diff(sent[2]) <= 1514 + 1500, "{sent:?}");
}

#[test]
fn a_sparse_flow_is_served_before_a_backlog() {
    let mut fq = fq(10_000);
    for number in 0..100 {
        push(&mut fq, 0, of(1, number, 1000)).unwrap();
    }
    // Two packets of the backlog use up its first turn as a new flow.
    pop(&mut fq, 0);
    pop(&mut fq, 0);
    push(&mut fq, 0, of(2, 0, 100)).unwrap();
    assert_eq!(pop(&mut fq, 0).unwrap().flow, 2);
}

#[test]
fn packets_of_a_flow_stay_in_order() {
    let mut fq = fq(10_000);
    for number in 0..500 {
        push(&mut fq, 0, of(number % 7, number, 400)).unwrap();
    }
    let mut last = [None; 7];
    while let Some(packet) = pop(&mut fq, 1) {
        let last = &mut last[packet.flow as usize];
        assert!(last.is_none_or(|n| n < packet.number));
        *last = Some(packet.number);
    }
}

#[test]
fn an_overflow_drops_the_head_of_the_longest_queue() {
    let mut fq = fq(101);
    for number in 0..100 {
        push(&mut fq, 0, of(1, number, 1000)).unwrap();
    }
    // The capacity is 101 with the packet in service: the next arrival evicts a packet, and not
    // itself.
    let victim = push(&mut fq, 0, of(2, 0, 1000)).unwrap_err();
    assert_eq!((victim.flow, victim.number), (1, 0));
    assert_eq!(fq.packets(), 100);
}

#[test]
fn a_standing_queue_of_one_flow_does_not_affect_another_flow() {
    let mut fq = fq(100_000);
    for number in 0..20_000 {
        push(&mut fq, 0, of(1, number, 1000)).unwrap();
    }
    let mut victims = Vec::new();
    for millis in 0..2000 {
        if millis % 20 == 0 {
            push(&mut fq, millis, of(2, millis, 200)).unwrap();
        }
        let sent = fq.dequeue(at(millis), &mut |p| victims.push(p));
        if let Some((p, _)) = sent.filter(|(p, _)| p.flow == 2) {
            // The packet waits for at most one packet of the other flow: 1 ms here.
            assert!(at(millis).since(at(p.number)) <= Duration::from_millis(2));
        }
    }
    assert!(!victims.is_empty());
    assert!(victims.iter().all(|p| p.flow == 1));
}
