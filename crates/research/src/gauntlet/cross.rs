use super::path_basics::{PACKET_BYTES, PathBasics};
use super::random_stream::RandomStream;

/// The cross traffic of half the paths, as TOML: one kind, at 10 to 70 % of the rate, except for elephants, which take as much
/// as they can get.
pub(super) fn drawn(
    stream: &impl Fn(&str) -> RandomStream,
    PathBasics { mbit, rtt_ms }: PathBasics,
) -> String {
    if stream("cross traffic").chance(0.5) {
        return String::new();
    }
    let load = stream("load").between(0.1, 0.7);
    let bits = mbit * 1e6 * load;
    let kind = match stream("cross kind").integer(0, 3) {
        0 => {
            let count = stream("pareto sources").integer(2, 20);
            let rate = bits / count as f64;
            return format!(
                "\n[[cross]]              # {:.0} % of the rate\nkind = \"pareto\"\ncount = {count}\nrate = \"{rate:.0}bit/s\"\n",
                load * 100.0
            );
        }
        1 => {
            let packets = stream("mouse").log_between(5.0, 100.0);
            // A second of sleep, and a slow start of a few RTTs.
            let cycle = 1.0 + libm::log2(packets / 5.0 + 2.0) * rtt_ms * 1e-3;
            let count = users(bits * cycle / (packets * PACKET_BYTES * 8.0));
            format!(
                "kind = \"mice\"\ncount = {count}\npackets = [{}, {}]\nsleep = [\"0.8s\", \"1.2s\"]\n",
                (packets * 0.8).round(),
                (packets * 1.2).round()
            )
        }
        2 => format!("kind = \"elephants\"\ncount = {}\n", stream("elephants").integer(1, 8)),
        _ => {
            let size = stream("size").log_between(50e3, 2e6);
            let cycle = 1.0 + libm::log2(size / PACKET_BYTES / 10.0 + 1.0) * rtt_ms * 1e-3;
            let count = users(bits * cycle / (size * 8.0));
            format!(
                "kind = \"closed-loop\"\nusers = {count}\nsize_mean = \"{size:.0}B\"\nthink_mean = \"1s\"\n"
            )
        }
    };
    format!(
        "\n[[cross]]\n{kind}congestion = \"cubic\"\nrtt = [\"{:.3}ms\", \"{:.3}ms\"]\nstart = [\"0s\", \"1s\"]\n",
        rtt_ms * 0.6,
        rtt_ms * 1.4
    )
}

/// `count` rounded, at least one.
fn users(count: f64) -> u64 {
    (count.round() as u64).max(1)
}
