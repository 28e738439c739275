//! Changes of the path during a transfer. A kind of change that is not drawn adds no table.

use core::fmt::Write;

use super::path_basics::{PACKET_BYTES, PathBasics, WARMUP_S};
use super::random_stream::RandomStream;

/// Maximum rate: the hosts' link rate.
const MAX_MBIT: f64 = 900.0;

/// Whether the rate changes, the route changes, flows join, and flows leave.
fn change_kinds(stream: &impl Fn(&str) -> RandomStream) -> (bool, bool, bool, bool) {
    let [rate, route, join, leave] =
        ["rate change", "route change", "joiners", "leavers"].map(|what| stream(what).chance(0.5));
    // Every path of this population has at least one change.
    (rate || !(route || join || leave), route, join, leave)
}

/// Time of a change, seconds: well after the start, well before the end at 30 s.
fn moment(stream: &mut RandomStream) -> f64 {
    WARMUP_S + stream.between(4.0, 14.0)
}

/// `[[path.change]]`: a rate of a quarter to four times the old one, permanently or for some seconds; a route with 0.7 to
/// 1.8 times the propagation delay.
pub(super) fn of_path(
    stream: &impl Fn(&str) -> RandomStream,
    PathBasics { mbit, rtt_ms }: PathBasics,
) -> String {
    let (rate, route, ..) = change_kinds(stream);
    let mut text = String::new();
    if rate {
        let at = moment(&mut stream("rate change time"));
        let new = (mbit * stream("rate change factor").log_between(0.25, 4.0)).min(MAX_MBIT);
        let _ = write!(text, "\n[[path.change]]\nat = \"{at:.3}s\"\nrate = \"{new:.3}Mbit/s\"\n");
        if stream("rate change back").chance(0.5) {
            let back = at + stream("rate change back time").between(3.0, 10.0);
            let _ = write!(
                text,
                "\n[[path.change]]\nat = \"{back:.3}s\"\nrate = \"{mbit:.3}Mbit/s\"\n"
            );
        }
    }
    if route {
        let at = moment(&mut stream("route change time"));
        // Each hop adds a fifth of the RTT in each direction.
        let delay = rtt_ms / 5.0 * stream("route change factor").log_between(0.25, 3.0);
        let _ = write!(text, "\n[[path.change]]\nat = \"{at:.3}s\"\ndelay = \"{delay:.3}ms\"\n");
    }
    text
}

/// `[[cross]]`: flows that start during the transfer, and flows that end during it.
pub(super) fn of_company(
    stream: &impl Fn(&str) -> RandomStream,
    PathBasics { mbit, rtt_ms }: PathBasics,
) -> String {
    let (_, _, join, leave) = change_kinds(stream);
    let mut text = String::new();
    if join {
        let at = moment(&mut stream("joining"));
        let count = stream("joiner count").integer(1, 4);
        let _ = write!(
            text,
            "\n[[cross]]\nkind = \"elephants\"\ncount = {count}\ncongestion = \"cubic\"\n\
             rtt = \"{rtt_ms:.3}ms\"\nstart = \"{at:.3}s\"\n"
        );
    }
    if leave {
        let count = stream("leaver count").integer(1, 4);
        // The fair share over the same time.
        let seconds = stream("leaving").between(5.0, 15.0);
        let packets = mbit * 1e6 * seconds / (count + 1) as f64 / 8.0 / PACKET_BYTES;
        let packets = packets.round().max(1.0);
        let _ = write!(
            text,
            "\n[[cross]]              # each sends once\nkind = \"mice\"\ncount = {count}\n\
             packets = {packets}\nsleep = \"1000s\"\ncongestion = \"cubic\"\n\
             rtt = \"{rtt_ms:.3}ms\"\nstart = [\"0s\", \"1s\"]\n"
        );
    }
    text
}
