use std::fmt;

use sweetspot_units::{Duration, Rate, Volume};

use super::{Certificate, DirectionCertificate, LatenessCertificate};

/// Maximum length of a histogram bar, so that a line has at most 60 columns.
const BAR_COLUMNS: u64 = 12;

impl fmt::Display for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_empty = self.verdict.is_empty();
        let verdict = match self.verdict.trust {
            _ if is_empty => "nothing crossed the path",
            true => "TRUST",
            false => "DO NOT TRUST",
        };
        let priority = if self.real_time_priority { "real-time" } else { "ordinary" };
        writeln!(f, "Emulation certificate: {verdict} ({}, {priority} priority)", self.duration)?;
        if is_empty {
            return Ok(());
        }
        for reason in &self.verdict.reasons {
            writeln!(f, "  because {reason}")?;
        }
        let (up, down) = (&self.up, &self.down);
        if self.verdict.trust && up.achieved.is_none() && down.achieved.is_none() {
            writeln!(f, "  for delay and loss; no queue lasted long enough to test the rate")?;
        }
        writeln!(f, "{:26}{:>22}{:>22}", "", "up (near to far)", "down (far to near)")?;
        let mut row = |name: &str, show: &dyn Fn(&DirectionCertificate) -> String| {
            writeln!(f, "  {name:24}{:>22}{:>22}", show(up), show(down))
        };
        row("rate requested", &|d| match d.configured_mean {
            Some(configured_mean) if differs(configured_mean, d.configured) => {
                format!("{configured_mean}, mean")
            }
            _ => d.configured.to_string(),
        })?;
        row("  achieved when backlogged", &|d| match d.achieved {
            Some(rate) => rate.to_string(),
            None => "not tested".into(),
        })?;
        row("packets in", &|d| d.packets_in.to_string())?;
        row("  out", &|d| d.packets_out.to_string())?;
        row("  on the path at the end", &|d| d.packets_held.to_string())?;
        row("  dropped: by the queue", &|d| d.dropped_by_buffer.to_string())?;
        row("  dropped: random loss", &|d| d.dropped_at_random.to_string())?;
        if self.up.dropped_by_policer + self.down.dropped_by_policer > 0 {
            row("  dropped: policer", &|d| d.dropped_by_policer.to_string())?;
        }
        row("  lost by this machine", &|d| d.lost_by_machine.total().to_string())?;
        row("queue mean / max", &|d| format!("{} / {}", d.queue_mean, d.queue_max))?;
        row("  of a buffer of", &|d| match d.buffer {
            Volume::Packets(_) => format!("{} ({})", d.buffer, d.buffer_bytes),
            Volume::Bytes(_) => d.buffer.to_string(),
        })?;
        let known = |late: Option<Duration>| late.map_or("-".to_owned(), |late| late.to_string());
        row("released late by: median", &|d| known(d.lateness.p50))?;
        row("  p99", &|d| known(d.lateness.p99))?;
        row("  max", &|d| known(d.lateness.max))?;
        histogram(f, &up.lateness, &down.lateness)
    }
}

/// Whether two rates differ by more than the rounding to whole packets.
fn differs(configured_mean: Rate, configured: Rate) -> bool {
    (configured_mean.as_f64() / configured.as_f64() - 1.0).abs() > 1e-3
}

fn histogram(
    f: &mut fmt::Formatter<'_>,
    up: &LatenessCertificate,
    down: &LatenessCertificate,
) -> fmt::Result {
    let max = up.buckets.iter().chain(&down.buckets).map(|b| b.packets).max().unwrap_or(0);
    if max > 0 {
        writeln!(f, "  packets by lateness, up and down:")?;
    }
    let mut last = Duration::ZERO;
    for (up, down) in up.buckets.iter().zip(&down.buckets) {
        let name = match up.up_to {
            Some(border) => format!("up to {border}"),
            None => format!("over {last}"),
        };
        last = up.up_to.unwrap_or(last);
        if up.packets + down.packets == 0 {
            continue;
        }
        let bar = |packets: u64| "#".repeat((packets * BAR_COLUMNS).div_ceil(max.max(1)) as usize);
        let line = format!(
            "  {name:>14} {:>8} {:12} {:>8} {}",
            up.packets,
            bar(up.packets),
            down.packets,
            bar(down.packets)
        );
        writeln!(f, "{}", line.trim_end())?;
    }
    Ok(())
}
