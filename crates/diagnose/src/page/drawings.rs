use std::collections::HashMap;
use std::net::SocketAddr;

use sweetspot_trace::packet::Segment;

use super::Drawing;
use crate::Flow;

/// Both ends, the smaller first.
type Ends = [SocketAddr; 2];

fn ends(a: SocketAddr, b: SocketAddr) -> Ends {
    if a <= b { [a, b] } else { [b, a] }
}

/// The graphs of several flows, from the second pass over their capture.
#[derive(Debug)]
pub struct Drawings {
    drawings: Vec<Option<Drawing>>,
    requested: HashMap<Ends, Vec<usize>>,
}

impl Drawings {
    /// Empty graphs of `flows`. Flows that no capture shows have none.
    pub fn new(flows: &[Flow]) -> Drawings {
        let drawing = |flow: &Flow| Some(Drawing::new(flow.source, flow.seen?));
        let drawings = flows.iter().map(drawing).collect();
        let mut requested: HashMap<Ends, Vec<usize>> = HashMap::new();
        for (n, flow) in flows.iter().enumerate() {
            requested.entry(ends(flow.source, flow.destination)).or_default().push(n);
        }
        Drawings { drawings, requested }
    }

    /// Takes a segment of the capture.
    pub fn take(&mut self, segment: &Segment) {
        let requested = self.requested.get(&ends(segment.source, segment.destination));
        for n in requested.into_iter().flatten() {
            self.drawings[*n].iter_mut().for_each(|drawing| drawing.take(segment));
        }
    }

    /// The graphs, in the order of the flows.
    pub fn end(mut self) -> Vec<Option<Drawing>> {
        self.drawings.iter_mut().flatten().for_each(Drawing::end);
        self.drawings
    }
}
