//! The text after the options in the help, with the members of a certificate.

pub const AFTER: &str = "\
Examples:
  Ping across 100 ms:
    sweetspot emulate --path \"rate=100Mbit/s rtt=100ms buffer=125kB\" -- \\
      ping -c 3 10.77.0.2

  Two programs, one on each side:
    sweetspot emulate --path \"rate=20Mbit/s rtt=40ms buffer=100pkt loss=0.1%\" \\
      --far 'iperf3 -s -1' -- sh -c 'sleep 0.2; iperf3 -c $SWEETSPOT_FAR'

  An asymmetric path, and a shell:
    sweetspot emulate --path \"up.rate=10Mbit/s down.rate=100Mbit/s rtt=30ms \\
      buffer=256kB jitter=2ms\" -- bash

  A path that `sweetspot measure --scenario` wrote:
    sweetspot emulate --path path.toml -- bash

  The highest rate that this machine emulates accurately:
    sweetspot emulate --self-test

The certificate says TRUST if all of this held, in each direction:
  - p99 lateness: at most 10 % of the time in which the full buffer drains, and
    at most 5 % of the RTT; up to 0.1 ms is always accepted
  - latest release: within the time in which the full buffer drains; up to 1 ms
    is always accepted
  - rate while the bottleneck was backlogged: within 1 %
  - this machine lost no packet, and saw at most one in 1000 too late: after it
    had decided which packets left the queue at that time; up to 0.1 ms is
    always accepted
The exit code does not depend on it; for scripts, --certificate writes
\"verdict\": {\"trust\": true, \"reasons\": []}; trust is null if nothing crossed.

Exit codes: 1 the path could not be emulated; 2 the command line is wrong, or
names a file that does not exist; 128+N signal N ended COMMAND; 126 COMMAND
cannot be executed; 127 COMMAND or the far command was not found. Any other code
is COMMAND's own.

Members of --json and --certificate:
  verdict            the judgement:
    trust              true or false; null if nothing crossed the path
    carried            false if nothing crossed the path
    reasons            the reasons not to trust it
  path               the path in the notation of --path, each direction apart;
                     keys with a default may be absent
  duration_s         time for which the emulator carried packets
  real_time_priority whether it ran at real-time priority
  up, down           near to far, and far to near, each with:
    packets_in, bytes_in, packets_out, bytes_out, packets_held
                       arrivals, departures, and the rest at the end
    dropped_by_buffer, dropped_at_random, dropped_by_policer
                       drops by the emulated path
    lost_by_machine    losses of this machine, which the path does not have:
      ring, link, release, oversized
    asked_bps          the rate requested
    achieved_bps, due_bps, backlogged_s
                       the rate during backlogs, the one due then, their length
    buffer, buffer_bytes
                       as written, and for packets of the MTU
    queue_mean_bytes, queue_max_bytes
    lateness           of releases beyond their due time:
      p50_s, p99_s, max_s
      buckets            histogram, each with:
        up_to_s, packets
    stale_stamps, stalest_s
                       packets seen too late for a decision; the largest delay

Members of --self-test --json:
  highest_rate_bps   null if this machine emulated no rate accurately
  trials             the rates tried, each with:
    rate_bps, truthful, reasons, underloaded, p99_lateness_s
  delay_error        of probes at 100 Mbit/s and 20 ms:
    median_s, p99_s, max_s, probes, early
  duration_s         of the test

Members of --list --json:
  paths              the named paths, each with:
    name, about, spec, source

Names in _s are seconds, in _bps bit/s; packets are IP packets.";

#[cfg(test)]
mod tests {
    use sweetspot_emulator::{
        Certificate, CertificateVerdict, DelayError, DirectionCertificate, LatenessBucket,
        LatenessCertificate, MachineLosses, RateTrial, SelfTest,
    };
    use sweetspot_units::{Bytes, Duration, Rate, Volume};

    use super::AFTER;
    use crate::verbs::members::{listed, written};

    fn direction() -> DirectionCertificate {
        let zero = Duration::ZERO;
        let buckets = vec![LatenessBucket { up_to: None, packets: 0 }];
        DirectionCertificate {
            packets_in: 0,
            bytes_in: Bytes::ZERO,
            packets_out: 0,
            bytes_out: Bytes::ZERO,
            packets_held: 0,
            dropped_by_buffer: 0,
            dropped_at_random: 0,
            dropped_by_policer: 0,
            lost_by_machine: MachineLosses { ring: 0, link: 0, release: 0, oversized: 0 },
            configured: Rate::ZERO,
            achieved: None,
            configured_mean: None,
            backlogged: zero,
            buffer: Volume::Packets(1),
            buffer_bytes: Bytes::ZERO,
            queue_mean: Bytes::ZERO,
            queue_max: Bytes::ZERO,
            lateness: LatenessCertificate { p50: None, p99: None, max: None, buckets },
            stale_stamps: 0,
            stalest: zero,
        }
    }

    fn certificate() -> Certificate {
        Certificate {
            verdict: CertificateVerdict { trust: true, carried: true, reasons: Vec::new() },
            path: String::new(),
            duration: Duration::ZERO,
            real_time_priority: true,
            up: direction(),
            down: direction(),
        }
    }

    fn self_test() -> SelfTest {
        let zero = Duration::ZERO;
        let trial = RateTrial {
            rate: Rate::ZERO,
            truthful: true,
            reasons: Vec::new(),
            underloaded: false,
            p99_lateness: zero,
        };
        let delay_error = DelayError { median: zero, p99: zero, max: zero, probes: 0, early: 0 };
        SelfTest { highest: None, trials: vec![trial], delay_error, duration: zero }
    }

    #[test]
    fn the_help_lists_exactly_the_json_members() {
        let list = |title: &str| {
            let (_, list) = AFTER.split_once(&format!("Members of {title}:")).unwrap();
            listed(list.split("\n\n").next().unwrap())
        };
        let documents = [
            ("--json and --certificate", written(&certificate())),
            ("--self-test --json", written(&self_test())),
            ("--list --json", written(&super::super::named_paths())),
        ];
        let page = include_str!("../../../../../docs/formats.md");
        let (_, page) = page.split_once("## A certificate").unwrap();
        for (title, members) in documents {
            assert_eq!(list(title), members, "{title}");
            for name in members {
                assert!(page.contains(&format!("`{name}")), "docs/formats.md lacks {name}");
            }
        }
    }
}
