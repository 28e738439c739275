use sweetspot_units::{Bytes, Time};

use super::{Blue, Codel, DropTail, FqCodel, Pie, Queue, Red};
use crate::Packet;

/// A queue discipline selected at run time.
#[derive(Debug, Clone)]
pub enum Discipline<P> {
    /// First in, first out.
    DropTail(DropTail<P>),
    /// Random Early Detection.
    Red(Box<Red<P>>),
    /// Controlled Delay.
    Codel(Box<Codel<P>>),
    /// FlowQueue-CoDel.
    FqCodel(Box<FqCodel<P>>),
    /// Proportional Integral controller Enhanced.
    Pie(Box<Pie<P>>),
    /// BLUE.
    Blue(Box<Blue<P>>),
}

/// Calls a method of the selected discipline.
macro_rules! dispatch {
    ($self:ident, $queue:ident => $call:expr) => {
        match $self {
            Discipline::DropTail($queue) => $call,
            Discipline::Red($queue) => $call,
            Discipline::Codel($queue) => $call,
            Discipline::FqCodel($queue) => $call,
            Discipline::Pie($queue) => $call,
            Discipline::Blue($queue) => $call,
        }
    };
}

impl<P: Packet> Queue<P> for Discipline<P> {
    #[inline]
    fn enqueue(&mut self, now: Time, packet: P, size: Bytes, in_service: Bytes) -> Result<(), P> {
        dispatch!(self, q => q.enqueue(now, packet, size, in_service))
    }

    #[inline]
    fn dequeue(&mut self, now: Time, dropped: &mut dyn FnMut(P)) -> Option<(P, Bytes)> {
        dispatch!(self, q => q.dequeue(now, dropped))
    }

    fn packets(&self) -> u64 {
        dispatch!(self, q => q.packets())
    }

    fn bytes(&self) -> Bytes {
        dispatch!(self, q => q.bytes())
    }
}
