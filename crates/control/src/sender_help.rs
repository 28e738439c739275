use std::collections::VecDeque;

use sweetspot_protocol::probe::Steering;
use sweetspot_sizing::TrainRequest;
use sweetspot_units::Bytes;

/// A sender is probed once it has sent this much. An initial window is ten segments (RFC 6928), and the requests of most
/// protocols are shorter.
pub(crate) const HELP_BYTES: Bytes = Bytes::new(10_000);

/// A request to the sender of a connection that is sized from both ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SenderRequest {
    /// Answer this probe.
    Probe {
        /// The probe's number.
        sequence: u32,
    },
    /// Send this train.
    Train {
        /// The train's number, which its packets carry.
        id: u32,
        /// The train's length and packet size.
        request: TrainRequest,
    },
    /// Send in this way from now on.
    Steer(Steering),
}

#[derive(Debug, Default)]
pub(crate) struct SenderHelp {
    pub is_reachable: bool,
    /// Whether the controller runs. It starts when the sender can be reached and has sent [`HELP_BYTES`].
    pub has_begun: bool,
    steering: Steering,
    requests: VecDeque<SenderRequest>,
}

impl SenderHelp {
    pub fn send_request(&mut self, request: SenderRequest) {
        self.requests.push_back(request);
    }

    /// Changes the steering of the sender. Only the latest steering is sent.
    pub fn steer(&mut self, change: impl FnOnce(&mut Steering)) {
        change(&mut self.steering);
        self.requests.retain(|request| !matches!(request, SenderRequest::Steer(_)));
        self.send_request(SenderRequest::Steer(self.steering));
    }

    pub fn poll(&mut self) -> Option<SenderRequest> {
        self.requests.pop_front()
    }
}
