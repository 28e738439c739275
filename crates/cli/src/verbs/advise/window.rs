use sweetspot_advise::Kernel;
use sweetspot_advise::window::{CrossShare, WindowAdvice, WindowQuestion, advise};
use sweetspot_sim::Simulator;
use sweetspot_study::Workers;
use sweetspot_study::window::{cost, try_windows};
use sweetspot_units::{BufferSize, Bytes, Duration, Probability, Rate};

use super::{OutputOptions, Verify};
use crate::verbs::Ending;
use crate::verbs::scenario_file::Parallel;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sweetspot advise window --rate 10Gbit/s --rtt 80ms
  sweetspot advise window --rate 1Gbit/s --rtt 40ms --buffer 500kB --cross mice:30% --explain")]
pub struct Arguments {
    /// Capacity of the path's narrowest link
    #[arg(long, allow_hyphen_values = true, value_name = "10Gbit/s")]
    rate: Rate,
    /// Round-trip time without queues
    #[arg(long, allow_hyphen_values = true, value_name = "80ms")]
    rtt: Duration,
    /// Buffer of that link, as a size or as a multiple of rate x RTT (0.5bdp)
    #[arg(long, allow_hyphen_values = true, value_name = "12MB")]
    buffer: Option<BufferSize>,
    /// Cross traffic and its share: udp, elephants or mice
    #[arg(long, value_name = "udp:30%")]
    cross: Option<CrossShare>,
    /// Random loss, or the loss of an already congested path
    #[arg(long, allow_hyphen_values = true, value_name = "1e-5")]
    loss: Option<Probability>,
    /// MTU of the path
    #[arg(long, allow_hyphen_values = true, value_name = "1500B", default_value = "1500B")]
    mtu: Bytes,
    /// Kernel version of the receiver, if it differs from this one
    #[arg(long, value_name = "6.18")]
    kernel: Option<Kernel>,
    /// Try windows in the simulator if no closed form gives the best one (cross traffic and a known
    /// buffer): sim, or none [default: sim if it takes less than two seconds]
    #[arg(long, value_name = "sim|none")]
    verify: Option<Verify>,
    #[command(flatten)]
    parallel: Parallel,
    #[command(flatten)]
    output: OutputOptions,
}

/// Longest simulation without --verify.
const MAX_UNASKED_TIME: Duration = Duration::from_secs(2);

pub fn run(a: Arguments) -> Ending {
    let question = WindowQuestion {
        rate: a.rate,
        rtt: a.rtt,
        buffer: a.buffer.map(|size| size.on(a.rate, a.rtt).in_bytes(a.mtu)),
        cross: a.cross,
        loss: a.loss,
        mtu: a.mtu,
        kernel: super::kernel(a.kernel)?,
    };
    let advice = verified(advise(&question)?, a.verify, a.parallel.workers())?;
    a.output.show(|explain| advice.text(explain), || advice.json())
}

/// `advice`, decided by the simulator if wanted.
fn verified(
    advice: WindowAdvice,
    verify: Option<Verify>,
    workers: Workers,
) -> Result<WindowAdvice, Box<dyn std::error::Error>> {
    let question = advice.question;
    let Some(windows) = advice.windows_to_try().filter(|_| verify != Some(Verify::None)) else {
        return Ok(advice);
    };
    let takes = cost(&question, windows.len()) / workers.count() as u64;
    if verify.is_none() && takes > MAX_UNASKED_TIME {
        note!(
            "sweetspot: by closed forms alone; the simulator would take some {takes} (--verify sim)"
        );
        return Ok(advice);
    }
    Ok(advice.decided_by(try_windows(&Simulator, &question, &windows, workers)?)?)
}
