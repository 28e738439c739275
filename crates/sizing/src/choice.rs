use core::fmt;
use core::str::FromStr;

use sweetspot_units::{Bytes, Volume};

use crate::error::NAMES;
use crate::fixed::{Decision, Static};
use crate::{
    BdpDefinition, Controller, ControllerConfig, Heffner, HeffnerVariant, LinuxAutotuning,
    LinuxRule, MeasuredBdp, RightSizing, Rledbat, SizingError, Sobas, SobasPaper, StaticScheme,
};

/// How a transfer's window is sized, as written on the command line or in a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sizing {
    /// `kernel`: only the kernel's autotuning.
    Kernel,
    /// `fixed:SIZE`: this window, always.
    Fixed(Volume),
    /// `max`: the largest window the host allows.
    Max,
    /// `bdp`: C x T_m; the path must be given.
    Bdp,
    /// `bdp1` ... `bdp6`: one of the six readings of "bandwidth-delay product".
    BdpBy(BdpDefinition),
    /// `wad`, `nlanr`: a static scheme that measures its bandwidth-delay product itself.
    Measured(StaticScheme),
    /// `drs`: Dynamic Right-Sizing.
    RightSizing,
    /// `drs:maxwnd`: Dynamic Right-Sizing with its paper's heuristic for the largest window.
    RightSizingLimited,
    /// `heffner`, `heffner:twice`, `heffner:read`, `heffner:no-timestamps`: Heffner's receiver.
    Heffner(HeffnerVariant),
    /// `linux`, `linux:VERSION`: the kernel's autotuning rule, simulated.
    Linux(LinuxRule),
    /// `sobas`: estimates the path and holds the window at its sweet spot.
    Sobas,
    /// `sobas:paper`: section VII-A of the SOBAS paper.
    SobasPaper,
    /// `sobas:live`: SOBAS without probes and without the sender's help, for connections of other
    /// programs.
    SobasLive,
    /// `rledbat`: yields to cross traffic (RFC 9840).
    Rledbat,
}

impl Sizing {
    /// The names of all sizings.
    pub const NAMES: [&str; 19] = NAMES;

    /// Whether its limits clamp the kernel's autotuning, which continues below them.
    pub fn clamps_autotuning(self) -> bool {
        match self {
            Sizing::Sobas | Sizing::SobasLive | Sizing::Rledbat => true,
            Sizing::Kernel
            | Sizing::Fixed(_)
            | Sizing::Max
            | Sizing::Bdp
            | Sizing::BdpBy(_)
            | Sizing::Measured(_)
            | Sizing::RightSizing
            | Sizing::RightSizingLimited
            | Sizing::Heffner(_)
            | Sizing::Linux(_)
            | Sizing::SobasPaper => false,
        }
    }

    /// The sizing that replaces this one where nothing can probe the path.
    pub fn without_probes(self) -> Sizing {
        if self == Sizing::Sobas { Sizing::SobasLive } else { self }
    }

    /// The controller for one connection.
    pub fn controller(
        self,
        config: &ControllerConfig,
    ) -> Result<Box<dyn Controller + Send>, SizingError> {
        let fixed = |window| Box::new(Static::new(Decision::Window(window)));
        // A x T_e is zero on a full path; a window below one segment would stop the sender.
        let known = |window: Bytes| fixed(window.max(config.mss));
        Ok(match self {
            Sizing::Kernel => Box::new(Static::new(Decision::LeaveToKernel)),
            Sizing::Fixed(size) => fixed(size.in_bytes(config.packet)),
            Sizing::Max => Box::new(Static::new(Decision::Open)),
            Sizing::Bdp => known(config.path.ok_or(SizingError::PathUnknown)?.bdp()),
            Sizing::BdpBy(definition) => match definition.window(config.path.as_ref())? {
                Some(window) => known(window),
                None => Box::new(Static::new(Decision::Open)),
            },
            Sizing::Measured(scheme) => Box::new(MeasuredBdp::new(config, scheme)),
            Sizing::RightSizing => Box::new(RightSizing::new(config)),
            Sizing::RightSizingLimited => Box::new(RightSizing::with_heuristic(config)),
            Sizing::Heffner(variant) => Box::new(Heffner::new(config, variant)),
            Sizing::Linux(rule) => Box::new(LinuxAutotuning::new(rule, config)),
            Sizing::Sobas => Box::new(Sobas::probing(config)),
            Sizing::SobasPaper => Box::new(SobasPaper::new(config)),
            Sizing::SobasLive => Box::new(Sobas::live(config)),
            Sizing::Rledbat => Box::new(Rledbat::new(config)),
        })
    }
}

impl FromStr for Sizing {
    type Err = SizingError;
    fn from_str(text: &str) -> Result<Sizing, SizingError> {
        Ok(match text {
            "kernel" => Sizing::Kernel,
            "max" => Sizing::Max,
            "bdp" => Sizing::Bdp,
            "wad" => Sizing::Measured(StaticScheme::Wad),
            "nlanr" => Sizing::Measured(StaticScheme::Nlanr),
            "drs" => Sizing::RightSizing,
            "drs:maxwnd" => Sizing::RightSizingLimited,
            "linux" => Sizing::Linux(LinuxRule::NEWEST),
            "sobas" => Sizing::Sobas,
            "sobas:paper" => Sizing::SobasPaper,
            "sobas:live" => Sizing::SobasLive,
            "rledbat" => Sizing::Rledbat,
            _ => return read_with_argument(text),
        })
    }
}

fn read_with_argument(text: &str) -> Result<Sizing, SizingError> {
    if let Some(size) = text.strip_prefix("fixed:") {
        let size: Volume = size.parse()?;
        if size.in_bytes(Bytes::new(1)) == Bytes::ZERO {
            return Err(SizingError::Zero);
        }
        return Ok(Sizing::Fixed(size));
    }
    if let Some(version) = text.strip_prefix("linux:") {
        let number = |part: &str| part.parse::<u32>().ok();
        let (major, minor) = version
            .split_once('.')
            .and_then(|(major, minor)| number(major).zip(number(minor)))
            .ok_or_else(|| SizingError::KernelVersion(version.to_owned()))?;
        return Ok(Sizing::Linux(LinuxRule::of_version(major, minor)));
    }
    if let Some(variant) = HeffnerVariant::ALL.into_iter().find(|v| v.name() == text) {
        return Ok(Sizing::Heffner(variant));
    }
    let definition = BdpDefinition::ALL.into_iter().find(|definition| definition.name() == text);
    definition.map(Sizing::BdpBy).ok_or_else(|| SizingError::Unknown(text.to_owned()))
}

impl fmt::Display for Sizing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sizing::Kernel => f.pad("kernel"),
            Sizing::Max => f.pad("max"),
            Sizing::Bdp => f.pad("bdp"),
            Sizing::BdpBy(definition) => definition.fmt(f),
            Sizing::Measured(scheme) => f.pad(scheme.name()),
            Sizing::RightSizing => f.pad("drs"),
            Sizing::RightSizingLimited => f.pad("drs:maxwnd"),
            Sizing::Heffner(variant) => f.pad(variant.name()),
            Sizing::Linux(LinuxRule::NEWEST) => f.pad("linux"),
            Sizing::Linux(rule) => f.pad(&format!("linux:{rule}")),
            Sizing::Sobas => f.pad("sobas"),
            Sizing::SobasPaper => f.pad("sobas:paper"),
            Sizing::SobasLive => f.pad("sobas:live"),
            Sizing::Rledbat => f.pad("rledbat"),
            Sizing::Fixed(size) => f.pad(&format!("fixed:{}", exactly(*size))),
        }
    }
}

/// The size as a text that parses to the same value: rounded only if that loses nothing.
fn exactly(size: Volume) -> String {
    let rounded = size.to_string().replace(' ', "");
    match size {
        Volume::Bytes(bytes) if rounded.parse() != Ok(size) => format!("{}B", bytes.get()),
        _ => rounded,
    }
}
