use core::fmt;
use core::str::FromStr;

use sweetspot_theory::reno::classify::{self, FlowModel};
use sweetspot_theory::reno::s_model::ShortFlow;
use sweetspot_units::Bytes;

use crate::AdviceError;

/// The mix of transfer sizes.
#[derive(Debug, Clone, PartialEq)]
pub enum Mix {
    /// Transfers that end during slow start.
    Short,
    /// Transfers that spend most of their time in congestion avoidance.
    Bulk,
    /// A sorted sample of transfer sizes; each size occurs as often as in the traffic.
    Sizes(Vec<Bytes>),
}

/// Which flows the buffer is sized for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Favour {
    /// Long flows: the L-model.
    Throughput,
    /// Short flows: the S-model.
    Short,
    /// Low queueing delay: the smallest buffer with which short flows keep 90 % of their
    /// throughput.
    Latency,
}

/// The paper's short flow: 30 packets (router-buffer §VII-C).
const PAPER_SHORT_FLOW: u64 = 30;

impl Mix {
    /// Reads one transfer size per line, such as `80kB`; empty lines and lines that begin with
    /// `#` do not count.
    ///
    /// # Errors
    /// If a line is not a size above zero, or the text has no sizes.
    pub fn from_sizes(text: &str) -> Result<Mix, AdviceError> {
        let mut sizes = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |why: String| AdviceError::Line {
                file: "mix",
                line: number + 1,
                given: line.chars().take(60).collect(),
                why,
            };
            let size: Bytes = line.parse().map_err(|e| wrong(format!("{e}")))?;
            if size == Bytes::ZERO {
                return Err(wrong("a transfer has 1 B or more".to_owned()));
            }
            sizes.push(size);
        }
        if sizes.is_empty() {
            return Err(AdviceError::NoSizes);
        }
        sizes.sort_unstable();
        Ok(Mix::Sizes(sizes))
    }

    /// The default objective for this mix at `loss`.
    pub(super) fn favour_at(&self, loss: f64, packet: Bytes) -> Favour {
        match self {
            Mix::Short => Favour::Short,
            Mix::Bulk => Favour::Throughput,
            Mix::Sizes(_) if self.long_share(loss, packet) > 0.5 => Favour::Throughput,
            Mix::Sizes(_) => Favour::Short,
        }
    }

    // Router-buffer §IV: a flow with five congestion events is long; a flow of M segments sees p M
    // events.
    /// The share of bytes in flows that would see five losses or more at `loss`.
    pub fn long_share(&self, loss: f64, packet: Bytes) -> f64 {
        let Mix::Sizes(sizes) = self else { return if *self == Mix::Bulk { 1.0 } else { 0.0 } };
        let bytes = |long_only: bool| -> f64 {
            let counted = sizes.iter().filter(|s| !long_only || is_long(**s, loss, packet));
            counted.map(|s| s.as_f64()).fold(0.0, |sum, size| sum + size)
        };
        bytes(true) / bytes(false)
    }

    /// The short flow to optimise for: the paper's, or the median short flow of the sample.
    ///
    /// # Errors
    /// If the packet size is zero.
    pub fn short_flow(&self, loss: f64, packet: Bytes) -> Result<ShortFlow, AdviceError> {
        let size = match self {
            Mix::Short | Mix::Bulk => packet * PAPER_SHORT_FLOW,
            Mix::Sizes(sizes) => {
                // The sizes are sorted, so the short ones come first.
                let short = sizes.iter().take_while(|s| !is_long(**s, loss, packet)).count();
                sizes[short.saturating_sub(1) / 2]
            }
        };
        Ok(ShortFlow::new(size, packet)?)
    }
}

fn is_long(size: Bytes, loss: f64, packet: Bytes) -> bool {
    let events = (size.as_f64() / packet.as_f64() * loss).round() as usize;
    classify::model(events) == FlowModel::L
}

impl FromStr for Favour {
    type Err = AdviceError;

    fn from_str(text: &str) -> Result<Favour, AdviceError> {
        match text {
            "throughput" => Ok(Favour::Throughput),
            "short" => Ok(Favour::Short),
            "latency" => Ok(Favour::Latency),
            _ => Err(AdviceError::NotThat {
                given: text.to_owned(),
                wanted: "an aim",
                example: "throughput, short or latency",
            }),
        }
    }
}

impl fmt::Display for Favour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Favour::Throughput => "throughput",
            Favour::Short => "short",
            Favour::Latency => "latency",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: Bytes = Bytes::new(1500);

    #[test]
    fn sizes_are_read_one_per_line() {
        let mix = Mix::from_sizes("# a log\n80kB\n\n 10kB\n15MB\n").unwrap();
        let sizes = [10_000, 80_000, 15_000_000].map(Bytes::new);
        assert_eq!(mix, Mix::Sizes(sizes.to_vec()));
    }

    #[test]
    fn the_error_quotes_a_malformed_line_with_its_number() {
        let e = Mix::from_sizes("80kB\n12 cats\n").unwrap_err().to_string();
        assert!(e.starts_with("line 2 of the mix file, \"12 cats\":"), "{e}");
        assert!(Mix::from_sizes("\n#\n").is_err());
        assert!(Mix::from_sizes("0B\n").is_err());
    }

    #[test]
    fn flows_with_five_losses_are_long() {
        // At 1 %, five losses take 450 segments, because 4.5 rounds to 5; 15 MB has 10,000.
        let mix = Mix::from_sizes("10kB\n80kB\n15MB\n").unwrap();
        assert!((mix.long_share(0.01, PACKET) - 15_000_000.0 / 15_090_000.0).abs() < 1e-12);
        assert_eq!(mix.favour_at(0.01, PACKET), Favour::Throughput);
        // At a loss of 1e-6 no flow is long: all complete in slow start.
        assert_eq!(mix.favour_at(1e-6, PACKET), Favour::Short);
        // The short ones at 1 % are 10 and 80 kB: 7 segments is their lower median.
        assert_eq!(mix.short_flow(0.01, PACKET).unwrap().segments(), 7);
    }
}
