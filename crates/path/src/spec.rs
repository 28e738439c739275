use core::fmt;
use core::str::FromStr;

use sweetspot_units::{BufferSize, Bytes, Duration, Probability, Rate, UnitError};
use thiserror::Error;

use crate::nearest::did_you_mean;
use crate::{DirectionSpec, NAMED_PATHS, PolicerSpec, QueueDiscipline, named_path};

/// A path between two hosts as written on the command line:
/// `rate=100Mbit/s rtt=100ms buffer=125kB loss=0 jitter=0ms mtu=1500B seed=1`.
///
/// Each direction has its own values: `up.` (near to far, the direction of the data) or `down.` before a key of
/// [`DirectionSpec`] sets only that direction, e.g. `up.rate=20Mbit/s down.buffer=100pkt`. `rtt` is the two-way propagation
/// delay, half each way. A comma counts as a space. A buffer may be written as a multiple of its direction's rate x `rtt`:
/// `buffer=1bdp`. `@lte` and other names ([`NAMED_PATHS`]) stand for a path; keys after a name change it. A policer is
/// `policer=20Mbit/s` with `policer_burst=100kB`.
///
/// ```
/// use sweetspot_path::PathSpec;
/// use sweetspot_units::Bytes;
///
/// let path: PathSpec = "rate=100Mbit/s rtt=40ms buffer=125kB".parse()?;
/// assert_eq!(path.bdp(), Bytes::new(500_000));
/// # Ok::<(), sweetspot_path::PathError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct PathSpec {
    /// Near to far.
    pub up: DirectionSpec,
    /// Far to near.
    pub down: DirectionSpec,
    /// The largest IP packet that the path carries.
    pub mtu: Bytes,
    /// The seed of random loss and jitter.
    pub seed: u64,
}

/// Why a path is rejected.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum PathError {
    /// A word is not `key=value`.
    #[error("path: \"{0}\" is not key=value{name}; write it like rate=100Mbit/s rtt=100ms buffer=125kB", name = as_name(.0))]
    NotAPair(String),
    /// A key is unknown.
    #[error(
        "path: unknown key \"{0}\"{near}; expected rtt, mtu, seed or one of {keys} (each of these also as up.KEY and down.KEY)",
        near = near_key(.0), keys = DirectionSpec::KEYS.join(", ")
    )]
    UnknownKey(String),
    /// A name is unknown.
    #[error("path: unknown name \"@{0}\"{near}; expected one of {names}", near = near_name(.0), names = names().join(", "))]
    UnknownName(String),
    /// A key is given twice.
    #[error("path: {0} is given twice; keep one")]
    Twice(String),
    /// A required key is missing. Holds the key and an example.
    #[error("path: {0} is missing; write it like {1}")]
    Missing(String, String),
    /// A value cannot be parsed as its quantity.
    #[error("path: {key}: {source}")]
    Unit {
        /// The key.
        key: String,
        /// The fault in the value.
        source: UnitError,
    },
    /// A value is out of range, or not one of the allowed words.
    #[error("path: {key}={value}: {why}")]
    Impossible {
        /// The key.
        key: String,
        /// The value as given.
        value: String,
        /// The reason, and the allowed values.
        why: String,
    },
}

impl PathSpec {
    /// The two-way propagation delay: the papers' T_m.
    pub fn rtt(&self) -> Duration {
        self.up.delay + self.down.delay
    }

    /// The largest share of the link's bytes that is TCP payload: full-size IPv4 packets with 40 bytes of headers and 12
    /// bytes of timestamp option (RFC 7323), e.g. 1448/1500.
    pub fn payload_share(&self) -> f64 {
        (self.mtu.as_f64() - 52.0) / self.mtu.as_f64()
    }

    /// The largest rate of TCP payload, near to far.
    pub fn payload_capacity(&self) -> Rate {
        self.up.rate.scaled(self.payload_share())
    }

    /// The bandwidth-delay product, C x T_m.
    pub fn bdp(&self) -> Bytes {
        self.up.rate * self.rtt()
    }
}

fn names() -> [String; NAMED_PATHS.len()] {
    NAMED_PATHS.map(|path| format!("@{}", path.name))
}

/// A question that suggests the name, if `word` is one without its `@`.
fn as_name(word: &str) -> String {
    let path = named_path(word);
    path.map_or(String::new(), |path| format!(" (did you mean @{}?)", path.name))
}

fn near_name(name: &str) -> String {
    did_you_mean(&format!("@{name}"), names().iter().map(String::as_str))
}

fn near_key(key: &str) -> String {
    let sides = ["", "up.", "down."].into_iter();
    let sided: Vec<String> =
        sides.flat_map(|side| DirectionSpec::KEYS.map(|key| format!("{side}{key}"))).collect();
    did_you_mean(key, sided.iter().map(String::as_str).chain(["rtt", "mtu", "seed"]))
}

/// Whether `c` separates two keys.
fn separates(c: char) -> bool {
    c.is_whitespace() || c == ','
}

/// The text with a name such as `@lte` at its beginning replaced by its definition. Keys after the name override the name's
/// own keys.
fn resolve_name(text: &str) -> Result<String, PathError> {
    let Some(named) = text.trim_start().strip_prefix('@') else { return Ok(text.to_owned()) };
    let (name, rest) = named.split_once(separates).unwrap_or((named, ""));
    let path = named_path(name).ok_or_else(|| PathError::UnknownName(name.to_owned()))?;
    let key = |word: &str| word.split_once('=').map_or("", |(key, _)| key).to_owned();
    let given: Vec<String> = rest.split(separates).map(key).collect();
    // A key for both directions replaces the keys for each direction.
    let replaced = |own: &str| {
        let plain = own.split_once('.').map_or(own, |(_, plain)| plain);
        // Both keys set the propagation delay.
        let other = match plain {
            "rtt" => "delay",
            "delay" => "rtt",
            _ => plain,
        };
        given.iter().any(|given| given == own || given == plain || given == other)
    };
    let kept = path.spec.split(' ').filter(|word| !replaced(&key(word)));
    Ok(kept.chain([rest]).collect::<Vec<&str>>().join(" "))
}

/// The values of one direction's keys as they were written.
#[derive(Default)]
struct DirectionText<'a>([Option<&'a str>; DirectionSpec::KEYS.len()]);

impl<'a> DirectionText<'a> {
    fn slot(&mut self, key: &str) -> Option<&mut Option<&'a str>> {
        let index = DirectionSpec::KEYS.iter().position(|known| *known == key)?;
        self.0.get_mut(index)
    }

    fn get(&self, key: &str) -> Option<&'a str> {
        let index = DirectionSpec::KEYS.iter().position(|known| *known == key)?;
        self.0[index]
    }
}

impl FromStr for PathSpec {
    type Err = PathError;

    fn from_str(text: &str) -> Result<PathSpec, PathError> {
        let text = &resolve_name(text)?;
        let (mut both, mut up, mut down) =
            (DirectionText::default(), DirectionText::default(), DirectionText::default());
        let (mut rtt, mut mtu, mut seed) = (None, None, None);
        let words = text.split(separates);
        for word in words.filter(|word| !word.is_empty()) {
            let (key, value) =
                word.split_once('=').ok_or_else(|| PathError::NotAPair(word.to_owned()))?;
            let slot = match key {
                "rtt" => Some(&mut rtt),
                "mtu" => Some(&mut mtu),
                "seed" => Some(&mut seed),
                _ => match key.split_once('.') {
                    Some(("up", key)) => up.slot(key),
                    Some(("down", key)) => down.slot(key),
                    Some(_) => None,
                    None => both.slot(key),
                },
            };
            let slot = slot.ok_or_else(|| PathError::UnknownKey(key.to_owned()))?;
            if slot.replace(value).is_some() {
                return Err(PathError::Twice(key.to_owned()));
            }
        }
        let mtu = resolve_mtu(mtu)?;
        let rtt = rtt.map(|v| read::<Duration>("rtt", v)).transpose()?;
        let seed = match seed {
            None => 1,
            Some(v) => v.parse().map_err(|_| PathError::Impossible {
                key: "seed".into(),
                value: v.to_owned(),
                why: "it must be a whole number".into(),
            })?,
        };
        let written = |side, own, other| Written { side, own, other, both: &both };
        let (up, down) = (written("up", &up, &down), written("down", &down, &up));
        let spec =
            PathSpec { up: resolve(&up, rtt, mtu)?, down: resolve(&down, rtt, mtu)?, mtu, seed };
        let delayed = [up, down].into_iter().find(|side| side.get("delay").is_some());
        match rtt.filter(|rtt| *rtt != spec.rtt()).zip(delayed) {
            Some((rtt, side)) => {
                let sum = spec.rtt();
                let why = format!(
                    "both ways add up to {sum}, but rtt is {rtt}; leave one of the two out"
                );
                Err(side.impossible("delay", why))
            }
            None => Ok(spec),
        }
    }
}

fn read<T: FromStr<Err = UnitError>>(key: &str, value: &str) -> Result<T, PathError> {
    value.parse().map_err(|source| PathError::Unit { key: key.to_owned(), source })
}

fn resolve_mtu(written: Option<&str>) -> Result<Bytes, PathError> {
    let Some(value) = written else { return Ok(Bytes::new(1500)) };
    let mtu: Bytes = read("mtu", value)?;
    // 576: every IPv4 host accepts this (RFC 791); 9000: the common jumbo frame.
    if !(576..=9000).contains(&mtu.get()) {
        return Err(PathError::Impossible {
            key: "mtu".into(),
            value: value.to_owned(),
            why: "it must be between 576B and 9000B".into(),
        });
    }
    Ok(mtu)
}

/// The values for one direction: from its own keys, otherwise from the common ones.
struct Written<'a> {
    side: &'static str,
    own: &'a DirectionText<'a>,
    other: &'a DirectionText<'a>,
    both: &'a DirectionText<'a>,
}

impl Written<'_> {
    /// The value of `key`, together with the key as the user wrote it, for messages.
    fn get(&self, key: &str) -> Option<(String, &str)> {
        let own = self.own.get(key).map(|value| (format!("{}.{key}", self.side), value));
        own.or(self.both.get(key).map(|value| (key.to_owned(), value)))
    }

    fn read<T: FromStr<Err = UnitError>>(&self, key: &str) -> Result<Option<T>, PathError> {
        self.get(key).map(|(key, value)| read(&key, value)).transpose()
    }

    fn required<T: FromStr<Err = UnitError>>(
        &self,
        key: &'static str,
        example: &'static str,
    ) -> Result<T, PathError> {
        self.read(key)?.ok_or_else(|| self.missing(key, example))
    }

    /// The error for a missing key: for this direction only, if the other direction has its own.
    fn missing(&self, key: &str, example: &str) -> PathError {
        let side = match self.other.get(key) {
            Some(_) => format!("{}.", self.side),
            None => String::new(),
        };
        PathError::Missing(format!("{side}{key}"), format!("{side}{example}"))
    }

    fn impossible(&self, key: &str, why: impl Into<String>) -> PathError {
        let (key, value) = self.get(key).unwrap_or_else(|| (key.to_owned(), ""));
        PathError::Impossible { key, value: value.to_owned(), why: why.into() }
    }

    /// Parses one of several words.
    fn choice<T: Copy>(&self, key: &str, choices: &[(&str, T)]) -> Result<Option<T>, PathError> {
        let Some((_, value)) = self.get(key) else { return Ok(None) };
        let chosen = choices.iter().find(|(name, _)| *name == value);
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let wrong = || {
            let near = did_you_mean(value, names.iter().copied());
            self.impossible(key, format!("it must be one of {}{near}", names.join(", ")))
        };
        chosen.map(|(_, choice)| Some(*choice)).ok_or_else(wrong)
    }

    fn policer(&self) -> Result<Option<PolicerSpec>, PathError> {
        let Some(rate) = self.read("policer")? else {
            return match self.get("policer_burst") {
                Some(_) => Err(self.missing("policer", "policer=20Mbit/s")),
                None => Ok(None),
            };
        };
        let burst = self.required("policer_burst", "policer_burst=100kB")?;
        Ok(Some(PolicerSpec { rate, burst }))
    }
}

fn resolve(
    written: &Written<'_>,
    rtt: Option<Duration>,
    mtu: Bytes,
) -> Result<DirectionSpec, PathError> {
    let rate = written.required("rate", "rate=100Mbit/s")?;
    let delay = match (written.read("delay")?, rtt) {
        (Some(delay), _) => delay,
        (None, Some(rtt)) => rtt / 2,
        (None, None) => return Err(written.missing("rtt", "rtt=100ms")),
    };
    let buffer: BufferSize =
        written.required("buffer", "buffer=125kB, buffer=100pkt or buffer=1bdp")?;
    if let (BufferSize::Products(_), None) = (buffer, rtt) {
        let why = "rate x round trip needs rtt; add rtt=100ms, or write a size";
        return Err(written.impossible("buffer", why));
    }
    let buffer = buffer.on(rate, rtt.unwrap_or(Duration::ZERO));
    let loss_burst = match written.get("loss_burst") {
        None => 1,
        Some((_, value)) => value.parse().map_err(|_| {
            written.impossible("loss_burst", "it must be a whole number of packets, 1 or more")
        })?,
    };
    let spec = DirectionSpec {
        queue: written.choice("queue", &QueueDiscipline::CHOICES)?.unwrap_or_default(),
        burst: written.read("burst")?.unwrap_or(Bytes::ZERO),
        policer: written.policer()?,
        loss: written.read("loss")?.unwrap_or(Probability::ZERO),
        loss_burst,
        jitter: written.read("jitter")?.unwrap_or(Duration::ZERO),
        jitter_reorders: written
            .choice("jitter_order", &DirectionSpec::JITTER_ORDERS)?
            .unwrap_or(false),
        reorder: written.read("reorder")?.unwrap_or(Probability::ZERO),
        reorder_by: written.read("reorder_by")?.unwrap_or(Duration::ZERO),
        aggregation: written.read("aggregation")?.unwrap_or(Duration::ZERO),
        ..DirectionSpec::new(rate, delay, buffer)
    };
    spec.check(mtu).map_err(|(key, why)| written.impossible(key, why))?;
    Ok(spec)
}

impl fmt::Display for PathSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (side, spec) in [("up", &self.up), ("down", &self.down)] {
            for (key, value) in spec.written() {
                write!(f, "{side}.{key}={value} ")?;
            }
        }
        write!(f, "mtu={} seed={}", self.mtu.to_string().replace(' ', ""), self.seed)
    }
}
