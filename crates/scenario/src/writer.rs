//! Writes a scenario as text with every key, so that parsing it gives the same scenario.

use core::fmt::{self, Display, Formatter};
use core::str::FromStr;

use sweetspot_path::DirectionSpec;
use sweetspot_units::{Bytes, Duration, Probability, Rate, Volume};

use crate::hop::{PathDirection, TracedHop};
use crate::path::{Change, Path, Reverse};
use crate::scenario::{Scenario, Ties};
use crate::tcp::{Flavour, Tcp};
use crate::traffic::{Cross, TrafficKind, Transfer};

/// TOML with every key in a fixed order, independent of the defaults: two scenarios are equal if and
/// only if their texts are.
impl Display for Scenario {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut table = Table(f);
        table.value("title", text(&self.title))?;
        table.value("seed", self.seed)?;
        table.value("warmup", duration(self.warmup))?;
        table.value("duration", duration(self.duration))?;
        table.value("ties", text(ties(self.ties)))?;
        table.optional("send_pool", self.send_pool.map(bytes))?;
        self.path.write(&mut table)?;
        for cross in &self.cross {
            cross.write(&mut table)?;
        }
        for transfer in &self.transfers {
            transfer.write(&mut table)?;
        }
        Ok(())
    }
}

struct Table<'a, 'f>(&'a mut Formatter<'f>);

impl Table<'_, '_> {
    fn header(&mut self, header: &str) -> fmt::Result {
        writeln!(self.0, "\n{header}")
    }

    fn value(&mut self, key: &str, value: impl Display) -> fmt::Result {
        writeln!(self.0, "{key} = {value}")
    }

    fn optional(&mut self, key: &str, value: Option<impl Display>) -> fmt::Result {
        value.map_or(Ok(()), |value| self.value(key, value))
    }
}

impl Path {
    fn write(&self, table: &mut Table<'_, '_>) -> fmt::Result {
        table.header("[path]")?;
        table.value("rtt", duration(self.rtt))?;
        table.value("packet", bytes(self.packet))?;
        table.value("packet_spread", bytes(self.packet_spread))?;
        table.value("access_rate", rate(self.access_rate))?;
        table.value("reverse", text(reverse(self.reverse)))?;
        if self.is_download {
            table.value("forward", text("down"))?;
        }
        for (hop, reverse_hop) in self.hops.iter().zip(&self.backward) {
            table.header("[[path.hop]]")?;
            write_hop(hop, table)?;
            if reverse_hop != hop {
                table.header("[path.hop.backward]")?;
                write_hop(reverse_hop, table)?;
                if reverse_hop.policer.is_none() && hop.policer.is_some() {
                    table.value("policer", text("none"))?;
                }
            }
        }
        self.changes.iter().try_for_each(|change| change.write(table))?;
        self.traces.iter().try_for_each(|traced| traced.write(table))
    }
}

fn write_hop(hop: &DirectionSpec, table: &mut Table<'_, '_>) -> fmt::Result {
    table.value("rate", rate(hop.rate))?;
    table.value("delay", duration(hop.delay))?;
    table.value("buffer", volume(hop.buffer))?;
    table.value("queue", text(hop.queue.name()))?;
    table.value("burst", bytes(hop.burst))?;
    table.optional("policer", hop.policer.map(|policer| rate(policer.rate)))?;
    table.optional("policer_burst", hop.policer.map(|policer| bytes(policer.burst)))?;
    table.value("loss", probability(hop.loss))?;
    table.value("loss_burst", hop.loss_burst)?;
    table.value("jitter", duration(hop.jitter))?;
    table.value("jitter_order", text(hop.jitter_order()))?;
    table.value("reorder", probability(hop.reorder))?;
    table.value("reorder_by", duration(hop.reorder_by))?;
    table.value("aggregation", duration(hop.aggregation))
}

impl Change {
    fn write(&self, table: &mut Table<'_, '_>) -> fmt::Result {
        table.header("[[path.change]]")?;
        table.value("at", duration(self.at))?;
        table.value("hop", self.hop)?;
        table.optional("way", self.way.map(way))?;
        table.optional("rate", self.rate.map(rate))?;
        table.optional("delay", self.delay.map(duration))
    }
}

impl TracedHop {
    fn write(&self, table: &mut Table<'_, '_>) -> fmt::Result {
        table.header("[[path.trace]]")?;
        table.value("hop", self.hop)?;
        table.optional("way", self.way.map(way))?;
        table.value("content", text(&self.trace.to_string()))
    }
}

impl Cross {
    fn write(&self, table: &mut Table<'_, '_>) -> fmt::Result {
        table.header("[[cross]]")?;
        self.kind.write(table)?;
        table.value("rtt", span(self.rtt))?;
        table.value("start", span(self.start))?;
        table.value("hop", self.hops.0)?;
        table.value("last_hop", self.hops.1)?;
        table.value("congestion", text(self.congestion.name()))?;
        if let Some(inputs) = self.inputs {
            table.value("inputs", inputs.count)?;
            table.value("input_rate", rate(inputs.rate))?;
            table.value("servers", inputs.servers)?;
        }
        self.tcp.write(table)
    }
}

impl TrafficKind {
    fn write(&self, table: &mut Table<'_, '_>) -> fmt::Result {
        table.value("kind", text(self.name()))?;
        match *self {
            TrafficKind::Pareto { count, rate: each, shape } => {
                table.value("count", count)?;
                table.value("rate", rate(each))?;
                table.value("shape", shape)
            }
            TrafficKind::Poisson { count, rate: each } => {
                table.value("count", count)?;
                table.value("rate", rate(each))
            }
            TrafficKind::Elephants { count, window } => {
                table.value("count", count)?;
                table.optional("window", window.map(volume))
            }
            TrafficKind::Mice { count, nodes, packets, sleep, window } => {
                table.value("count", count)?;
                table.value("nodes", nodes)?;
                table.value("packets", format_args!("[{}, {}]", packets.0, packets.1))?;
                table.value("sleep", span(sleep))?;
                table.optional("window", window.map(volume))
            }
            TrafficKind::ClosedLoop { users, nodes, size_mean, size_shape, think_mean, window } => {
                table.value("users", users)?;
                table.value("nodes", nodes)?;
                table.value("size_mean", bytes(size_mean))?;
                table.value("size_shape", size_shape)?;
                table.value("think_mean", duration(think_mean))?;
                table.optional("window", window.map(volume))
            }
            TrafficKind::Arrivals { rate: load, nodes, size_mean, size_shape, window } => {
                table.value("rate", rate(load))?;
                table.value("nodes", nodes)?;
                table.value("size_mean", bytes(size_mean))?;
                table.value("size_shape", size_shape)?;
                table.optional("window", window.map(volume))
            }
        }
    }
}

impl Transfer {
    fn write(&self, table: &mut Table<'_, '_>) -> fmt::Result {
        table.header("[[transfer]]")?;
        table.value("start", duration(self.start))?;
        table.value("follows", self.follows)?;
        table.optional("size", self.size.map(bytes))?;
        table.value("congestion", text(self.congestion.name()))?;
        table.value("congestion_fixed", self.congestion_fixed)?;
        table.value("sizing", text(&self.sizing.to_string()))?;
        for (key, application) in [("reader", &self.reader), ("writer", &self.writer)] {
            let written = (!application.is_greedy()).then(|| text(&application.to_string()));
            table.optional(key, written)?;
        }
        self.tcp.write(table)
    }
}

impl Tcp {
    fn write(&self, table: &mut Table<'_, '_>) -> fmt::Result {
        table.value("flavour", text(flavour(self.flavour)))?;
        table.value("delayed_ack", self.delayed_ack)?;
        table.value("ack_delay", duration(self.ack_delay))?;
        table.value("initial_window", volume(Volume::Packets(self.initial_window)))?;
        table.value("backoff", probability(self.backoff))?;
        table.value("min_rto", duration(self.min_rto))?;
        table.value("initial_rto", duration(self.initial_rto))?;
        table.value("clock", duration(self.clock))?;
        table.value("timestamps", self.timestamps)?;
        table.value("limited_transmit", self.limited_transmit)?;
        table.value("slow_start_restart", self.slow_start_restart)?;
        table.value("pacing", self.pacing)?;
        table.value("ecn", self.ecn)?;
        table.value("header", bytes(self.header))?;
        table.value("window_scale", self.window_scale)?;
        table.value("send_buffer", self.send_buffer.map_or_else(|| text("unlimited"), volume))?;
        table.value("segment_overhead", bytes(self.segment_overhead))?;
        table.value("max_window", volume(self.max_window))
    }
}

fn ties(ties: Ties) -> &'static str {
    match ties {
        Ties::Seeded => "seeded",
        Ties::Declared => "declared",
    }
}

fn way(way: PathDirection) -> String {
    text(PathDirection::CHOICES.iter().find(|(_, of)| *of == way).map_or("", |(name, _)| name))
}

fn reverse(reverse: Reverse) -> &'static str {
    match reverse {
        Reverse::Mirror => "mirror",
        Reverse::Clean => "clean",
    }
}

fn flavour(flavour: Flavour) -> &'static str {
    match flavour {
        Flavour::Ns2 => "ns2",
        Flavour::Linux => "linux",
    }
}

fn text(text: &str) -> String {
    toml::Value::from(text).to_string()
}

fn rate(rate: Rate) -> String {
    quantity(rate, format_args!("{}bit/s", rate.bits_per_second()))
}

fn duration(duration: Duration) -> String {
    quantity(duration, format_args!("{}ns", duration.as_nanos()))
}

fn bytes(bytes: Bytes) -> String {
    quantity(bytes, format_args!("{}B", bytes.get()))
}

fn volume(volume: Volume) -> String {
    match volume {
        Volume::Bytes(amount) => bytes(amount),
        Volume::Packets(packets) => format!("\"{packets}pkt\""),
    }
}

fn probability(probability: Probability) -> String {
    format!("\"{}\"", probability.get())
}

fn span((low, high): (Duration, Duration)) -> String {
    format!("[{}, {}]", duration(low), duration(high))
}

/// The common unit if that is exact; otherwise the smallest unit.
fn quantity<T: Display + FromStr + PartialEq>(value: T, exact: fmt::Arguments<'_>) -> String {
    let rounded = value.to_string().replace(' ', "");
    if rounded.parse().is_ok_and(|read: T| read == value) {
        format!("\"{rounded}\"")
    } else {
        format!("\"{exact}\"")
    }
}
