use std::collections::VecDeque;

use sweetspot_units::{Bytes, Time};

use super::Queue;
use super::codel::{CodelConfig, CodelControl};
use super::fifo::Fifo;
use crate::Packet;

/// FlowQueue-CoDel (RFC 8290): flows hashed to queues, served by deficit round robin with new
/// flows first, each under [`super::Codel`]'s control. When the limit is reached, the head of
/// the longest queue is dropped.
#[derive(Debug, Clone)]
pub struct FqCodel<P> {
    config: FqCodelConfig,
    flows: Vec<FlowQueue<P>>,
    fresh: VecDeque<usize>,
    old: VecDeque<usize>,
    packets: u64,
    bytes: Bytes,
    seed: u64,
}

/// The parameters of [`FqCodel`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FqCodelConfig {
    /// CoDel's parameters, for each queue.
    pub codel: CodelConfig,
    /// Capacity of all queues together in packets, including the one in service. RFC 8290 section
    /// 5.2.3 also counts packets, so that one arrival evicts at most one packet.
    pub limit: u64,
    /// Bytes that a flow may send per turn.
    pub quantum: Bytes,
    /// Number of queues that flows are hashed to.
    pub flows: usize,
}

impl FqCodelConfig {
    /// A capacity of `limit` packets, a quantum of 1514 bytes, 1024 queues (RFC 8290 section 5.2).
    pub fn new(limit: u64) -> FqCodelConfig {
        FqCodelConfig {
            codel: CodelConfig::default(),
            limit,
            quantum: Bytes::new(1514),
            flows: 1024,
        }
    }
}

#[derive(Debug, Clone)]
struct FlowQueue<P> {
    queue: Fifo<P>,
    control: CodelControl,
    /// Byte credit of this turn.
    credit: i64,
    listed: bool,
}

impl<P> FqCodel<P> {
    /// Empty queues. `seed` perturbs the hash.
    pub fn new(config: FqCodelConfig, seed: u64) -> FqCodel<P> {
        let flow = || FlowQueue {
            queue: Fifo::default(),
            control: CodelControl::default(),
            credit: 0,
            listed: false,
        };
        FqCodel {
            config,
            flows: core::iter::repeat_with(flow).take(config.flows.max(1)).collect(),
            fresh: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
            bytes: Bytes::ZERO,
            seed,
        }
    }

    fn slot(&self, flow: u64) -> usize {
        // SplitMix64's finalizer.
        let mut z = flow ^ self.seed;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % self.flows.len() as u64) as usize
    }

    /// Section 4.1.3: the head of the queue with the most bytes.
    fn evict(&mut self) -> Option<P> {
        let longest = self.flows.iter_mut().max_by_key(|flow| flow.queue.bytes())?;
        let victim = longest.queue.pop()?;
        self.packets -= 1;
        self.bytes -= victim.size;
        Some(victim.packet)
    }

    /// The next flow to serve, and whether it is a new one (section 4.2).
    fn turn(&mut self) -> Option<(usize, bool)> {
        loop {
            let fresh = !self.fresh.is_empty();
            let index = *if fresh { self.fresh.front() } else { self.old.front() }?;
            let flow = &mut self.flows[index];
            if flow.credit > 0 {
                return Some((index, fresh));
            }
            flow.credit += self.config.quantum.get() as i64;
            self.pop_list(fresh);
            self.old.push_back(index);
        }
    }

    fn pop_list(&mut self, fresh: bool) {
        if fresh {
            self.fresh.pop_front()
        } else {
            self.old.pop_front()
        };
    }

    /// Handles a turn with an empty queue. A new flow becomes an old one, so that it cannot return
    /// as a new flow ahead of others at once; an old flow leaves the list.
    fn retire(&mut self, index: usize, fresh: bool) {
        self.pop_list(fresh);
        if fresh {
            self.old.push_back(index);
        } else {
            self.flows[index].listed = false;
        }
    }
}

impl<P: Packet> Queue<P> for FqCodel<P> {
    fn enqueue(&mut self, now: Time, packet: P, size: Bytes, in_service: Bytes) -> Result<(), P> {
        let index = self.slot(packet.flow());
        let flow = &mut self.flows[index];
        flow.queue.push(now, packet, size);
        if !flow.listed {
            flow.listed = true;
            flow.credit = self.config.quantum.get() as i64;
            self.fresh.push_back(index);
        }
        self.packets += 1;
        self.bytes += size;
        if self.packets + u64::from(in_service > Bytes::ZERO) > self.config.limit {
            return self.evict().map_or(Ok(()), Err);
        }
        Ok(())
    }

    fn dequeue(&mut self, now: Time, dropped: &mut dyn FnMut(P)) -> Option<(P, Bytes)> {
        while let Some((index, fresh)) = self.turn() {
            let flow = &mut self.flows[index];
            let (packets, bytes) = (flow.queue.packets(), flow.queue.bytes());
            let head = flow.control.dequeue(now, &self.config.codel, &mut flow.queue, dropped);
            self.packets -= packets - flow.queue.packets();
            self.bytes -= bytes - flow.queue.bytes();
            if let Some((packet, size)) = head {
                flow.credit -= size.get() as i64;
                return Some((packet, size));
            }
            self.retire(index, fresh);
        }
        None
    }

    fn packets(&self) -> u64 {
        self.packets
    }

    fn bytes(&self) -> Bytes {
        self.bytes
    }
}
