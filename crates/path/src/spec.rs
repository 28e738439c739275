use core::fmt;
use core::str::FromStr;

use sweetspot_units::{BufferSize, Bytes, Duration, Probability, Rate, UnitError, Volume};
use thiserror::Error;

/// A path between two hosts as written on the command line:
/// `rate=100Mbit/s rtt=100ms buffer=125kB loss=0 jitter=0ms mtu=1500B seed=1`.
///
/// Each direction is its own: `up.` (near to far, the way the data goes) and `down.` before
/// `rate`, `delay`, `buffer`, `loss`, `jitter` or `queue` set that direction only, e.g.
/// `up.rate=20Mbit/s down.buffer=100pkt`. `rtt` is the two-way propagation, half each way. A comma stands
/// for a space. A buffer may be written as a multiple of its direction's rate x `rtt`: `buffer=1bdp`.
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
    /// The largest IP packet the path takes.
    pub mtu: Bytes,
    /// The seed of random loss and jitter.
    pub seed: u64,
}

/// One direction of a path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DirectionSpec {
    /// Bottleneck rate, counted on IP packets.
    pub rate: Rate,
    /// One-way propagation.
    pub delay: Duration,
    /// The bottleneck's buffer.
    pub buffer: Volume,
    /// Random loss.
    pub loss: Probability,
    /// Largest extra delay per packet, uniform from zero.
    pub jitter: Duration,
    /// The bottleneck's queue discipline.
    pub queue: QueueDiscipline,
}

/// A queue discipline by its name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum QueueDiscipline {
    /// First in, first out; what does not fit is dropped.
    #[default]
    DropTail,
    /// Random Early Detection.
    Red,
    /// CoDel (RFC 8289).
    Codel,
    /// FQ-CoDel (RFC 8290).
    FqCodel,
}

impl QueueDiscipline {
    const ALL: [QueueDiscipline; 4] = [
        QueueDiscipline::DropTail,
        QueueDiscipline::Red,
        QueueDiscipline::Codel,
        QueueDiscipline::FqCodel,
    ];

    /// As written on the command line.
    pub fn name(self) -> &'static str {
        match self {
            QueueDiscipline::DropTail => "drop-tail",
            QueueDiscipline::Red => "red",
            QueueDiscipline::Codel => "codel",
            QueueDiscipline::FqCodel => "fq-codel",
        }
    }
}

/// Why a path is refused.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum PathError {
    /// A word is not `key=value`.
    #[error("path: \"{0}\" is not key=value; write it like rate=100Mbit/s rtt=100ms buffer=125kB")]
    NotAPair(String),
    /// A key is unknown.
    #[error(
        "path: unknown key \"{0}\"; known are rate, rtt, delay, buffer, loss, jitter, queue (each also as up.KEY and down.KEY, rtt excepted), mtu, seed"
    )]
    UnknownKey(String),
    /// A key is given twice.
    #[error("path: {0} is given twice; keep one")]
    Twice(String),
    /// A required key is missing. Holds the key and an example.
    #[error("path: {0} is missing; write it like {1}")]
    Missing(&'static str, &'static str),
    /// A value is not of its quantity.
    #[error("path: {key}: {source}")]
    Unit {
        /// The key.
        key: String,
        /// What is wrong with the value.
        source: UnitError,
    },
    /// A value is out of range.
    #[error("path: {key}={value} is impossible: {why}")]
    Impossible {
        /// The key.
        key: String,
        /// The value as given.
        value: String,
        /// Why, and what is allowed.
        why: String,
    },
}

impl PathSpec {
    /// The two-way propagation: the papers' T_m.
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

    /// The textbook's bandwidth-delay product, C x T_m.
    pub fn bdp(&self) -> Bytes {
        self.up.rate * self.rtt()
    }
}

/// One side's keys as they were written.
#[derive(Default)]
struct DirectionText<'a> {
    rate: Option<&'a str>,
    delay: Option<&'a str>,
    buffer: Option<&'a str>,
    loss: Option<&'a str>,
    jitter: Option<&'a str>,
    queue: Option<&'a str>,
}

impl<'a> DirectionText<'a> {
    fn slot(&mut self, key: &str) -> Option<&mut Option<&'a str>> {
        Some(match key {
            "rate" => &mut self.rate,
            "delay" => &mut self.delay,
            "buffer" => &mut self.buffer,
            "loss" => &mut self.loss,
            "jitter" => &mut self.jitter,
            "queue" => &mut self.queue,
            _ => return None,
        })
    }
}

impl FromStr for PathSpec {
    type Err = PathError;

    fn from_str(text: &str) -> Result<PathSpec, PathError> {
        let (mut both, mut up, mut down) =
            (DirectionText::default(), DirectionText::default(), DirectionText::default());
        let (mut rtt, mut mtu, mut seed) = (None, None, None);
        let words = text.split(|c: char| c.is_whitespace() || c == ',');
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
        Ok(PathSpec {
            up: resolve("up", &up, &both, rtt, mtu)?,
            down: resolve("down", &down, &both, rtt, mtu)?,
            mtu,
            seed,
        })
    }
}

fn read<T: FromStr<Err = UnitError>>(key: &str, value: &str) -> Result<T, PathError> {
    value.parse().map_err(|source| PathError::Unit { key: key.to_owned(), source })
}

fn resolve_mtu(written: Option<&str>) -> Result<Bytes, PathError> {
    let Some(value) = written else { return Ok(Bytes::new(1500)) };
    let mtu: Bytes = read("mtu", value)?;
    // 576: what every IPv4 host takes (RFC 791); 9000: the common jumbo frame.
    if !(576..=9000).contains(&mtu.get()) {
        return Err(PathError::Impossible {
            key: "mtu".into(),
            value: value.to_owned(),
            why: "it must lie between 576B and 9000B".into(),
        });
    }
    Ok(mtu)
}

fn resolve(
    side: &str,
    own: &DirectionText<'_>,
    both: &DirectionText<'_>,
    rtt: Option<Duration>,
    mtu: Bytes,
) -> Result<DirectionSpec, PathError> {
    // The key is named as it was written, so that the message points at the user's own word.
    let pick = |key: &'static str, own: Option<&'_ str>, both: Option<&'_ str>| {
        own.map(|v| (format!("{side}.{key}"), v.to_owned()))
            .or(both.map(|v| (key.to_owned(), v.to_owned())))
    };
    let impossible = |key: &str, value: &str, why: String| PathError::Impossible {
        key: key.to_owned(),
        value: value.to_owned(),
        why,
    };

    let (key, value) =
        pick("rate", own.rate, both.rate).ok_or(PathError::Missing("rate", "rate=100Mbit/s"))?;
    let rate: Rate = read(&key, &value)?;
    if rate < Rate::from_bits_per_second(1000) {
        return Err(impossible(&key, &value, "it must be 1kbit/s or more".into()));
    }
    if rate > Rate::from_mbit_per_second(1_000_000) {
        return Err(impossible(&key, &value, "it must be 1Tbit/s or less".into()));
    }

    let delay = match (pick("delay", own.delay, both.delay), rtt) {
        (Some((key, value)), _) => read(&key, &value)?,
        (None, Some(rtt)) => rtt / 2,
        (None, None) => return Err(PathError::Missing("rtt", "rtt=100ms")),
    };
    if delay > Duration::from_secs(60) {
        let value = delay.to_string();
        return Err(impossible("delay", &value, "one way it must be 60s or less".into()));
    }

    let (key, value) = pick("buffer", own.buffer, both.buffer)
        .ok_or(PathError::Missing("buffer", "buffer=125kB, buffer=100pkt or buffer=1bdp"))?;
    let buffer: BufferSize = read(&key, &value)?;
    if let (BufferSize::Products(_), None) = (buffer, rtt) {
        let why = "rate x round trip needs rtt; add rtt=100ms, or write a size";
        return Err(impossible(&key, &value, why.into()));
    }
    let buffer = buffer.on(rate, rtt.unwrap_or(Duration::ZERO));
    let least = match buffer {
        Volume::Bytes(_) => Volume::Bytes(mtu),
        Volume::Packets(_) => Volume::Packets(1),
    };
    if buffer.in_bytes(mtu) < least.in_bytes(mtu) {
        let why = format!("it is below one packet, so nothing would pass; use {mtu} or more");
        return Err(impossible(&key, &value, why));
    }

    let loss = match pick("loss", own.loss, both.loss) {
        Some((key, value)) => {
            let loss: Probability = read(&key, &value)?;
            if loss.get() >= 1.0 {
                return Err(impossible(&key, &value, "nothing would pass".into()));
            }
            loss
        }
        None => Probability::ZERO,
    };
    let jitter = match pick("jitter", own.jitter, both.jitter) {
        Some((key, value)) => read(&key, &value)?,
        None => Duration::ZERO,
    };
    let queue = match pick("queue", own.queue, both.queue) {
        Some((key, value)) => {
            let named = QueueDiscipline::ALL.into_iter().find(|queue| queue.name() == value);
            let names = QueueDiscipline::ALL.map(QueueDiscipline::name).join(", ");
            named.ok_or_else(|| impossible(&key, &value, format!("it must be one of {names}")))?
        }
        None => QueueDiscipline::DropTail,
    };
    Ok(DirectionSpec { rate, delay, buffer, loss, jitter, queue })
}

impl fmt::Display for PathSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let squeezed = |d: &dyn fmt::Display| d.to_string().replace(' ', "");
        for (side, s) in [("up", &self.up), ("down", &self.down)] {
            write!(
                f,
                "{side}.rate={} {side}.delay={} {side}.buffer={} {side}.loss={} {side}.jitter={} ",
                squeezed(&s.rate),
                squeezed(&s.delay),
                squeezed(&s.buffer),
                s.loss.get(),
                squeezed(&s.jitter)
            )?;
            if s.queue != QueueDiscipline::DropTail {
                write!(f, "{side}.queue={} ", s.queue.name())?;
            }
        }
        write!(f, "mtu={} seed={}", squeezed(&self.mtu), self.seed)
    }
}
