use sweetspot_scenario::Scenario;

use crate::csv::{ReferenceRow, ReferenceTable};
use sweetspot_experiment::StudyError;

/// One run of ns-2 and its measurements.
#[derive(Debug, Clone, PartialEq)]
pub struct Ns2Case {
    /// The setting.
    pub setting: Ns2Setting,
    /// The window S, packets.
    pub window: u64,
    /// ns-2's seed.
    pub seed: u64,
    /// ns-2's measurements.
    pub truth: Ns2Measured,
}

/// All parameters except the window and the seed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ns2Setting {
    /// Cross traffic: `none`, `elephants`, `elephants-congested`, `pareto`, `mice`,
    /// `mice-congested`.
    pub cross: &'static str,
    /// TCP flavour: `2.35` or `2002`.
    pub flavour: &'static str,
    /// Whether the target's sink delays its ACKs.
    pub target_delays_acks: bool,
    /// Whether the buffer counts `packets` or `bytes`.
    pub queue: &'static str,
    /// Traffic on the reverse path: `mirror` or `clean`.
    pub reverse: &'static str,
    /// The mice's sleep, `from-to` in seconds.
    pub sleep: &'static str,
    /// The target's congestion control: `reno`, `newreno`, `sack1` or `sack`.
    pub congestion: &'static str,
    /// The buffer B_t, packets.
    pub buffer: u64,
    /// When the target starts, seconds.
    pub start: u64,
    /// Time from the target's start to the measurement, seconds.
    pub warmup: u64,
    /// Measured time, seconds.
    pub duration: u64,
}

/// The quantities compared.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Ns2Measured {
    /// Goodput of the target, Mbit/s.
    pub goodput_mbps: f64,
    /// Loss rate of all packets at the bottleneck.
    pub loss: f64,
    /// Mean queue, packets.
    pub queue_packets: f64,
    /// T_m plus the mean queueing delays of both directions, ms.
    pub rtt_ms: f64,
    /// Utilisation of the bottleneck before the target starts.
    pub utilisation_before: f64,
}

/// All cases. Cases with ns-2's `Sack1` occur twice: run with `sack1` and with RFC 6675.
pub fn cases() -> Result<Vec<Ns2Case>, StudyError> {
    let table = ReferenceTable::parse("ns2.csv", include_str!("../../data/ns2.csv"))?;
    let mut cases = table.rows().map(Ns2Case::read).collect::<Result<Vec<_>, _>>()?;
    let by_rfc: Vec<Ns2Case> = cases.iter().filter_map(Ns2Case::by_rfc6675).collect();
    cases.extend(by_rfc);
    Ok(cases)
}

impl Ns2Case {
    fn by_rfc6675(&self) -> Option<Ns2Case> {
        let setting = Ns2Setting { congestion: "sack", ..self.setting.clone() };
        (self.setting.congestion == "sack1").then(|| Ns2Case { setting, ..self.clone() })
    }

    fn read(row: ReferenceRow<'_>) -> Result<Ns2Case, StudyError> {
        Ok(Ns2Case {
            setting: Ns2Setting {
                cross: row.text("cross")?,
                flavour: row.text("flavour")?,
                target_delays_acks: row.integer("target_delays_acks")? == 1,
                queue: row.text("queue")?,
                reverse: row.text("reverse")?,
                sleep: row.text("sleep_s")?,
                congestion: row.text("congestion")?,
                buffer: row.integer("buffer_pkt")?,
                start: row.integer("start_s")?,
                warmup: row.integer("warmup_s")?,
                duration: row.integer("duration_s")?,
            },
            window: row.integer("window_pkt")?,
            seed: row.integer("seed")?,
            truth: Ns2Measured {
                goodput_mbps: row.number("goodput_mbps")?,
                loss: row.number("loss_all")?,
                queue_packets: row.number("queue_mean_pkt")?,
                rtt_ms: row.number("rtt_mean_ms")?,
                utilisation_before: row.number("utilisation_before")?,
            },
        })
    }
}

impl Ns2Setting {
    /// The scenario in the form in which a user would write it.
    pub fn text(&self, window: u64, seed: u64) -> String {
        let buffer = match self.queue {
            "bytes" => format!("{}B", self.buffer * 1000),
            _ => format!("{}pkt", self.buffer),
        };
        let measured_from = self.start + self.warmup;
        format!(
            "title = \"{cross}, B_t = {buffer}\"\n\
             seed = {seed}\nwarmup = \"{measured_from}s\"\nduration = \"{duration}s\"\n\n\
             [path]\nrate = \"50Mbit/s\"\nrtt = \"100ms\"\nbuffer = \"{buffer}\"\npacket = \"1000B\"\n\
             access_rate = \"1Gbit/s\"\nreverse = \"{reverse}\"\n\n\
             [tcp]\ndelayed_ack = false\ninitial_window = \"{iw}pkt\"\n{cross_entry}\n\
             [[transfer]]\nstart = \"{start}s\"\ncongestion = \"{congestion}\"\n\
             delayed_ack = {delays}\nsizing = \"fixed:{window}pkt\"\n",
            cross = self.cross,
            congestion = self.congestion,
            duration = self.duration,
            reverse = self.reverse,
            iw = if self.flavour == "2002" { 1 } else { 2 },
            cross_entry = self.cross_entry(),
            start = self.start,
            delays = self.target_delays_acks,
        )
    }

    fn cross_entry(&self) -> String {
        let delays = self.flavour == "2002";
        let rtt = "rtt = [\"80ms\", \"120ms\"]";
        let sleep = || {
            let (from, to) = self.sleep.split_once('-').unwrap_or((self.sleep, self.sleep));
            format!("[\"{from}s\", \"{to}s\"]")
        };
        match self.cross {
            "none" => String::new(),
            "elephants" => format!(
                "\n[[cross]]\nkind = \"elephants\"\ncount = 20\nwindow = \"22pkt\"\n{rtt}\n\
                 delayed_ack = {delays}\n"
            ),
            "elephants-congested" => format!(
                "\n[[cross]]\nkind = \"elephants\"\ncount = 20\n{rtt}\ndelayed_ack = {delays}\n"
            ),
            "pareto" => format!(
                "\n[[cross]]\nkind = \"pareto\"\ncount = 10\nrate = \"3.5Mbit/s\"\nshape = 1.5\n{rtt}\n"
            ),
            _ => format!(
                "\n[[cross]]\nkind = \"mice\"\ncount = 2000\npackets = [10, 15]\nwindow = \"20pkt\"\n\
                 sleep = {}\n{rtt}\ndelayed_ack = {delays}\n",
                sleep()
            ),
        }
    }

    /// The scenario.
    pub fn scenario(&self, window: u64, seed: u64) -> Result<Scenario, StudyError> {
        Ok(Scenario::parse(&self.text(window, seed))?)
    }
}
