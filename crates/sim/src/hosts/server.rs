use sweetspot_path::Random;
use sweetspot_units::Duration;

use super::{Flow, Group};

/// A host to which connections are opened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Server {
    /// Propagation delay between it and its input link.
    pub delay: Duration,
    pub input: u32,
}

/// Draws the server of a new connection of `flow`, if its group has servers.
pub(crate) fn choose_server(flow: &mut Flow, group: &Group, servers: &[Server], rng: &mut Random) {
    let range = &group.servers[flow.direction as usize];
    let count = u64::from(range.end - range.start);
    if count == 0 {
        return;
    }
    let drawn = rng.whole((0, count - 1)) as u32;
    let server = servers[(range.start + drawn) as usize];
    flow.uplink.change_delay(server.delay);
    flow.delay = server.delay;
    flow.input = Some(server.input);
}
