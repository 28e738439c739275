//! The advice as text, as a table, and as JSON.

use serde_json::{Value, json};
use sweetspot_theory::Packets;
use sweetspot_theory::router::capacity_ratio::Form;
use sweetspot_theory::router::per_flow::{Favoured, Router};

use super::model::LinkModel;
use super::{Basis, BufferChoice, RouterAdvice, RouterQuestion};
use crate::Formula;
use crate::formula::explained;
use crate::text::{list, row, table, wrap};

const SOURCES: &str = "Sources: Prasad, Dovrolis, Thottan, \"Router Buffer Sizing for TCP Traffic \
    and the Role of the Output/Input Capacity Ratio\"; Villamizar and Song 1994; Appenzeller, \
    Keslassy, McKeown 2004; Enachescu et al. 2005; Spang, Arslan, McKeown 2021.";

const PAPER: &str = "Prasad, Dovrolis, Thottan";

pub(super) fn formulas(
    q: &RouterQuestion,
    model: &LinkModel,
    router: Option<&Router>,
    buffer: Packets,
) -> Vec<Formula> {
    let gamma = model.ratio.gamma();
    let bdp = model.link.bdp();
    let mut all = vec![
        Formula {
            what: "capacity ratio",
            rule: "Gamma = C_out / C_in",
            numbers: format!("{} / {} = {gamma:.3}", q.rate, q.input_rate),
            source: PAPER,
        },
        Formula {
            what: "bandwidth-delay product",
            rule: "C T_o",
            numbers: format!("{} x {} / {} = {bdp}", q.rate, q.rtt, q.packet),
            source: "Villamizar and Song 1994",
        },
    ];
    let Some(r) = router else { return all };
    let (a, b, f) = (r.loss.a(), r.loss.b(), r.link.delay_slope());
    let (rule, numbers) = match (r.loss.form(), r.favoured) {
        (Form::PowerLaw, Favoured::Long) => {
            ("B = b / (f (2 - b)) C T_o, eq. (11)", format!("{b} / ({f} x {:.3}) x {bdp}", 2.0 - b))
        }
        (Form::PowerLaw, Favoured::Short(s)) => (
            "a b M C T_o B^-(1+b) = a M f (1-b) B^-b + f D, eq. (13)",
            format!(
                "a = {a}, b = {b}, f = {f}, M = {}, D = {}, C T_o = {bdp}",
                s.segments(),
                s.slow_start_rtts()
            ),
        ),
        (Form::Exponential, Favoured::Long) => (
            "no buffer if b C T_o < 2 f, else unbounded, eq. (16)",
            format!("{b} x {bdp} against 2 x {f}"),
        ),
        (Form::Exponential, Favoured::Short(s)) => (
            "f D / (v M) + (a f - a b C T_o) e^-bB = a b f B e^-bB, eq. (18)",
            format!("a = {a}, b = {b}, f = {f}, M = {}, D = {}", s.segments(), s.slow_start_rtts()),
        ),
    };
    let numbers = format!("{numbers}; used: {buffer}");
    all.push(Formula { what: "best buffer", rule, numbers, source: PAPER });
    if let Ok(loss) = r.loss.loss(buffer) {
        let (rule, numbers) = match r.loss.form() {
            Form::PowerLaw => ("p = a B^-b, eq. (8)", format!("{a} x {:.1}^-{b}", buffer.get())),
            Form::Exponential => {
                ("p = a e^-bB, eq. (14)", format!("{a} x e^-{b}x{:.1}", buffer.get()))
            }
        };
        let numbers = format!("{numbers} = {}", percent(Some(loss.get())));
        all.push(Formula { what: "loss", rule, numbers, source: PAPER });
    }
    all
}

impl RouterAdvice {
    /// The advice as text of at most 80 columns; `explain` adds the formulas with their numbers.
    pub fn text(&self, explain: bool) -> String {
        let mut out = wrap(&self.words(), 80, 0);
        out.push('\n');
        out.push_str(&self.table());
        if let Some(measured) = &self.question.measurement {
            out.push('\n');
            out.push_str(&measured.text());
        }
        out.push_str(&list("Assumed", &self.assumptions));
        if explain {
            out.push_str(&explained(&self.formulas));
        }
        out.push('\n');
        out.push_str(&wrap(SOURCES, 80, 2));
        out
    }

    fn words(&self) -> String {
        let q = &self.question;
        let r = &self.recommended;
        let form = match self.form {
            Form::PowerLaw => "so loss falls only as a power of the buffer",
            Form::Exponential => "so loss falls exponentially and a few packets are enough",
        };
        let link = format!("Gamma = {} / {} = {:.3}, {form}.", q.rate, q.input_rate, self.gamma);
        let delay = format!("{} ({}, {} when full)", r.buffer, r.bytes, r.worst_delay);
        let why = match self.basis {
            Basis::NothingQueues => {
                let n = q.inputs.unwrap_or_default();
                return format!(
                    "Gamma = {:.3}: {n} inputs of {} cannot exceed {}, so nothing queues beyond \
                     the packets that arrive together. Leave the buffer at its smallest.",
                    self.gamma, q.input_rate, q.rate
                );
            }
            Basis::Optimum => format!("For {} the best buffer is {delay}", q.favour),
            Basis::RangeLow => format!(
                "For latency take {delay}: short flows keep 90 % of their best or more, and the \
                 bursts of single flows fit"
            ),
            Basis::Simulation => format!(
                "For {} the formula asks for none; the bursts of single flows, which it neglects, \
                 ask for {delay}, the best in the paper's simulations",
                q.favour
            ),
            Basis::Unbounded => format!(
                "For {} throughput grows with the buffer as far as the formula reaches; take a \
                 bandwidth-delay product, {delay}",
                q.favour
            ),
        };
        let loss =
            r.loss.map_or(String::new(), |_| format!(" Expect {} of loss.", percent(r.loss)));
        let range = self.range_words().map_or(String::new(), |range| format!(" {range}"));
        format!("{link} {why}.{loss}{range}{}", self.available_words())
    }

    fn range_words(&self) -> Option<String> {
        let range = self.range?;
        Some(match range.high {
            Some(high) => {
                format!("Between {} and {high} a flow keeps 90 % of its throughput.", range.low)
            }
            None => format!("From {} on a flow keeps 90 % of its throughput.", range.low),
        })
    }

    fn available_words(&self) -> String {
        let Some(a) = &self.available else { return String::new() };
        let fit = match (self.range, a.share) {
            (Some(range), Some(share)) if a.buffer < range.low => {
                format!("too small: a flow gets {:.0} % of its best", share * 100.0)
            }
            (Some(range), Some(share)) if range.high.is_some_and(|h| a.buffer > h) => format!(
                "more than is good: a flow gets {:.0} % of its best; configure less",
                share * 100.0
            ),
            (Some(_), Some(_)) => "within the range".to_owned(),
            _ if a.buffer > self.recommended.buffer => {
                "more than needed: configure less".to_owned()
            }
            _ => "not more than recommended".to_owned(),
        };
        format!(" The {} that the device has are {fit}.", a.bytes)
    }

    fn table(&self) -> String {
        let head = ["rule", "", "packets", "bytes", "full", "loss", "rate"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        let all = [&self.recommended].into_iter().chain(&self.available).chain(&self.rules);
        rows.extend(all.map(|c: &BufferChoice| {
            let packets = format!("{:.0}", c.buffer.get());
            row([
                &c.name,
                &c.rule,
                &packets,
                &c.bytes,
                &c.worst_delay,
                &percent(c.loss),
                &c.share.map_or("-".to_owned(), |s| format!("{:.0} %", s * 100.0)),
            ])
        }));
        table(2, &rows)
    }

    /// The advice as JSON.
    pub fn json(&self) -> Value {
        let packet = self.question.packet;
        let range = self.range.map(|r| {
            json!({
                "low_packets": r.low.get(),
                "high_packets": r.high.map(Packets::get),
                "low_bytes": r.low.in_bytes(packet).get(),
                "high_bytes": r.high.map(|h| h.in_bytes(packet).get()),
            })
        });
        let rules: serde_json::Map<String, Value> =
            self.rules.iter().map(|c| (c.name.to_owned(), choice(c))).collect();
        let basis = match self.basis {
            Basis::NothingQueues => "nothing_queues",
            Basis::Optimum => "optimum",
            Basis::RangeLow => "range_low",
            Basis::Simulation => "simulation",
            Basis::Unbounded => "unbounded",
        };
        let form = match self.form {
            Form::PowerLaw => "PL",
            Form::Exponential => "EX",
        };
        let formulas: Vec<Value> = self.formulas.iter().map(Formula::json).collect();
        json!({
            "gamma": self.gamma,
            "form": form,
            "basis": basis,
            "buffer_packets": self.recommended.buffer.get(),
            "buffer_bytes": self.recommended.bytes.get(),
            "buffer_delay_s": self.recommended.worst_delay.as_secs_f64(),
            "loss": self.recommended.loss,
            "per_flow_bps": self.per_flow.map(|r| r.bits_per_second()),
            "range_90_percent": range,
            "rules": rules,
            "available": self.available.as_ref().map(choice),
            "fit": self.question.measurement.as_ref().map(super::LinkMeasurement::json),
            "assumptions": self.assumptions,
            "formulas": formulas,
            "sources": SOURCES,
        })
    }
}

fn choice(c: &BufferChoice) -> Value {
    json!({
        "rule": c.rule,
        "packets": c.buffer.get(),
        "bytes": c.bytes.get(),
        "delay_s": c.worst_delay.as_secs_f64(),
        "loss": c.loss,
        "throughput_share": c.share,
    })
}

fn percent(p: Option<f64>) -> String {
    match p {
        None => "-".to_owned(),
        Some(p) if p >= 1e-3 => format!("{:.2} %", p * 100.0),
        Some(p) => format!("{:.1e}", p),
    }
}
