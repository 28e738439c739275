//! The advice as JSON.

use serde_json::{Value, json};
use sweetspot_theory::Packets;
use sweetspot_theory::router::capacity_ratio::Form;

use super::show::SOURCES;
use super::{Basis, BufferChoice, Favour, RouterAdvice, Source};
use crate::Formula;

impl RouterAdvice {
    /// The advice as JSON.
    pub fn json(&self) -> Value {
        let packet = self.question.packet;
        let range = self.kept().map(|r| {
            json!({
                "low_packets": r.low.get(),
                "high_packets": r.high.map(Packets::get),
                "low_bytes": r.low.in_bytes(packet).get(),
                "high_bytes": r.high.map(|h| h.in_bytes(packet).get()),
            })
        });
        let rules = [&self.by_formula].into_iter().chain(&self.rules);
        let rules: serde_json::Map<String, Value> =
            rules.map(|c| (c.rule.name().to_owned(), self.choice(c))).collect();
        let form = |form: Form| match form {
            Form::PowerLaw => "PL",
            Form::Exponential => "EX",
        };
        let maximised = match self.question.favour {
            Favour::Throughput => "bulk",
            Favour::Short | Favour::Latency => "short",
        };
        let outside: Vec<Value> = self
            .outside
            .iter()
            .map(|o| json!({ "quantity": o.quantity, "given": o.given, "low": o.low, "high": o.high }))
            .collect();
        let formulas: Vec<Value> = self.formulas.iter().map(Formula::json).collect();
        json!({
            "gamma": self.gamma,
            "flows": self.flows,
            "form": form(self.form),
            "form_of_ratio": self.expected.map(form),
            "basis": basis(self.basis),
            "source": source(self.recommended.source),
            "closed_form": self.is_closed_form(),
            "maximised": maximised,
            "transfer_bytes": { "short": self.transfers[0].get(), "bulk": self.transfers[1].get() },
            "buffer_packets": self.recommended.buffer.get(),
            "buffer_bytes": self.recommended.bytes.get(),
            "buffer_delay_s": self.recommended.worst_delay.as_secs_f64(),
            "delay_s": self.recommended.mean_delay.map(|d| d.as_secs_f64()),
            "loss": self.recommended.loss,
            "utilisation": self.recommended.used,
            "active_flows": self.recommended.flows,
            "flow_bps": self.recommended.flow.map(|r| r.bits_per_second()),
            "short_bps": self.recommended.short.map(|r| r.bits_per_second()),
            "bulk_bps": self.recommended.bulk.map(|r| r.bits_per_second()),
            "short_error_bps": error(&self.recommended, 0),
            "bulk_error_bps": error(&self.recommended, 1),
            "loss_error": self.recommended.noise.map(|noise| noise.loss),
            "delay_error_s": self.recommended.noise.map(|noise| noise.mean_delay.as_secs_f64()),
            "utilisation_error": self.recommended.noise.map(|noise| noise.used),
            "interpolated": self.is_interpolated(&self.recommended),
            "size_mean_bytes": self.size_mean.get(),
            "two_rules": self.two_rules.as_ref().map(|two| {
                json!({ "persistent": self.choice(&two.persistent), "transfers": self.choice(&two.transfers) })
            }),
            "range_90_percent": range,
            "rules": rules,
            "available": self.available.as_ref().map(|available| self.choice(available)),
            "fit": self.question.measurement.as_ref().map(super::LinkMeasurement::json),
            "simulation": self.simulated.as_ref().map(super::Simulated::json),
            "outside": outside,
            "warnings": self.warnings(),
            "assumptions": self.assumptions,
            "formulas": formulas,
            "sources": SOURCES,
        })
    }
}

fn basis(basis: Basis) -> &'static str {
    match basis {
        Basis::NothingQueues => "nothing_queues",
        Basis::InitialWindow => "initial_window",
        Basis::Optimum => "optimum",
        Basis::Floor => "floor",
        Basis::Edge => "edge",
        Basis::RangeLow => "range_low",
        Basis::Simulation => "simulation",
        Basis::BandwidthDelay => "bandwidth_delay",
        Basis::SquareRoot => "square_root",
        Basis::BetweenRules => "between_rules",
        Basis::Crowd => "crowd",
        Basis::Simulator => "simulator",
    }
}

fn source(source: Source) -> &'static str {
    match source {
        Source::Formula => "formula",
        Source::Simulation => "simulation",
    }
}

/// The standard error of a median rate: of short transfers if `of` is 0, of bulk transfers if it is
/// 1.
fn error(c: &BufferChoice, of: usize) -> Option<u64> {
    Some(c.errors?[of].bits_per_second())
}

impl RouterAdvice {
    /// A buffer with numbers from the source of the answer.
    fn choice(&self, choice: &BufferChoice) -> Value {
        let c = &self.shown(choice);
        json!({
            "source": source(c.source),
            "packets": c.buffer.get(),
            "bytes": c.bytes.get(),
            "worst_delay_s": c.worst_delay.as_secs_f64(),
            "delay_s": c.mean_delay.map(|d| d.as_secs_f64()),
            "loss": c.loss,
            "utilisation": c.used,
            "active_flows": c.flows,
            "flow_bps": c.flow.map(|r| r.bits_per_second()),
            "short_bps": c.short.map(|r| r.bits_per_second()),
            "bulk_bps": c.bulk.map(|r| r.bits_per_second()),
            "short_error_bps": error(c, 0),
            "bulk_error_bps": error(c, 1),
            "loss_error": c.noise.map(|noise| noise.loss),
            "delay_error_s": c.noise.map(|noise| noise.mean_delay.as_secs_f64()),
            "utilisation_error": c.noise.map(|noise| noise.used),
            "interpolated": self.is_interpolated(c),
        })
    }
}
