//! The advice as text, as a table, and as JSON.

use serde_json::{Map, Value, json};
use sweetspot_units::{Bytes, Rate};

use super::explain::{memory, to_fill};
use super::{TriedWindows, WindowAdvice, WindowChoice};
use crate::formula::{Formula, explained};
use crate::text::{list, row, table, wrap};

const SOURCES: &str = "Sources: Jain, Prasad, Dovrolis, \"The TCP Bandwidth-Delay Product \
    revisited\"; Padhye et al. 1998; RFC 9438; Linux net/ipv4/tcp_input.c; RFC 7323.";

impl WindowAdvice {
    /// The advice as five lines and warnings, in at most `width` columns. `explain` adds the simulated windows, the six
    /// bandwidth-delay products, the assumptions, and the formulas with their numbers.
    pub fn text(&self, explain: bool, width: usize) -> String {
        let mut out = self.in_five_lines(width);
        out.extend(self.own_warnings().map(|words| wrap(&format!("Warning: {words}"), width, 2)));
        if explain {
            if let Some(simulated) = &self.simulated {
                out.push('\n');
                out.push_str(&self.simulated_text(simulated, width));
            }
            out.push_str(&self.table(width));
            if !self.products().is_empty() {
                out.push('\n');
                out.push_str(&products_in_words(width));
            }
            out.push('\n');
            out.push_str(&self.settings_text(width));
            out.push_str(&list("Assumed", &self.assumptions, width));
            out.push_str(&explained(&self.all_formulas(), width));
            out.push('\n');
            out.push_str(&wrap(SOURCES, width, 2));
        }
        out
    }

    /// The formulas of the path, and of the settings for the recommended window.
    fn all_formulas(&self) -> Vec<Formula> {
        let settings = self.recommended.window.map(|window| memory(&self.question, window));
        let fills = self.fills_path.zip(self.recommended.rate);
        let fills = fills.map(|(fills, one)| to_fill(&fills, one));
        let all = self.formulas.iter().cloned().chain(fills);
        all.chain(settings.into_iter().flatten()).collect()
    }

    /// The table of windows by closed form: all of them, or those that were not simulated.
    fn table(&self, width: usize) -> String {
        let mut rows = vec![row([&"window", &"definition", &"payload, bytes", &"expected rate"])];
        let mut add = |c: &WindowChoice| {
            let bytes = c.window.map_or("not known".to_owned(), |w| w.get().to_string());
            let expected = if c.window.is_some() { rate(c.rate) } else { "-".to_owned() };
            rows.push(row([&c.name, &c.rule, &bytes, &expected]));
        };
        let by = match self.simulated {
            None => {
                add(&self.recommended);
                self.wrong_by_two.iter().for_each(&mut add);
                "By closed form:"
            }
            Some(_) => "By closed form alone, not simulated:",
        };
        self.ends.iter().chain(self.products()).filter(|c| !c.is_simulated).for_each(&mut add);
        match rows.len() {
            1 => String::new(),
            _ => format!("\n{by}\n{}{}", table(2, &rows), self.unknown_words(width)),
        }
    }

    /// The reason why the product of an unlimited window's rate and RTT is unknown.
    fn unknown_words(&self, width: usize) -> String {
        let is_known = self.products().iter().all(|choice| choice.window.is_some());
        let why = match self.simulated {
            Some(_) => "no unlimited window was simulated, as it only takes from the other flows",
            None => "no closed form gives that rate beside cross traffic",
        };
        if is_known {
            String::new()
        } else {
            wrap(&format!("  bdp5 is not known: {why}."), width, 2)
        }
    }

    fn simulated_text(&self, simulated: &TriedWindows, width: usize) -> String {
        let head = ["payload, bytes", "rate", "+- %", "queueing", "loss", "", "windows"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        for tried in &simulated.windows {
            let half = simulated.interval(tried);
            let half = half.map(|half| half.as_f64() / tried.rate.as_f64().max(1.0) * 100.0);
            rows.push(row([
                &tried.window.get(),
                &tried.rate,
                &half.map_or("-".to_owned(), |half| format!("{half:.2}")),
                &tried.delay,
                &loss(tried.loss),
                &match tried.as_fast {
                    true if Some(tried) == simulated.hold() => "hold",
                    true => "as fast",
                    false if tried.is_unsure => "maybe",
                    false => "",
                },
                &self.names_at(tried.window),
            ]));
        }
        let head = format!(
            "Simulated, means of {} runs each, +- the 95 % interval of their mean (Student's t). hold: recommended. As fast as the best: slower by at \
             most 0.5 %, or by at most 2 % and not significantly (paired t, 95 %). maybe: slower by more, but not \
             significantly. low, high: the ends of the sweet spot. Each run: {} after {} to settle, access links of {}.{}",
            simulated.seeds,
            simulated.measured,
            simulated.settling,
            simulated.access_rate,
            simulated.lossless_words()
        );
        format!("{}{}", wrap(&head, width, 0), table(0, &rows))
    }

    /// The six products beside cross traffic; none without it, because they then hardly differ.
    fn products(&self) -> &[WindowChoice] {
        if self.question.cross.is_some() { &self.bdps } else { &[] }
    }

    /// The names of `window`; three or more consecutive products are shortened to the first and the last.
    fn names_at(&self, window: Bytes) -> String {
        let is_it = |choice: &&WindowChoice| choice.window == Some(window);
        let ends = self.ends.iter().filter(is_it);
        let ends = ends.map(|choice| choice.name.trim_start_matches("sweet_spot_").to_owned());
        let in_a_row = self.products().chunk_by(|one, next| one.window == next.window);
        let products = in_a_row.filter(|run| run.iter().any(|choice| is_it(&choice)));
        let products = products.map(|run| match run {
            [first, _, .., last] => format!("{}-{}", first.name, last.name),
            _ => run.iter().map(|choice| choice.name).collect::<Vec<_>>().join(" "),
        });
        ends.chain(products).collect::<Vec<_>>().join(" ")
    }

    fn settings_text(&self, width: usize) -> String {
        let s = &self.settings;
        let kernel = self.question.kernel;
        let rmem_max = s.so_rcvbuf;
        let host_wide = row([&"receiver", &"net.ipv4.tcp_rmem[2]", &s.tcp_rmem_max.get()]);
        let (mut rows, own) = match s.autotuning_reaches() {
            true => (vec![host_wide], ["", "or SO_RCVBUF (and net.core.rmem_max)"]),
            false => (Vec::new(), ["receiver", "SO_RCVBUF (and net.core.rmem_max)"]),
        };
        rows.push(row([&own[0], &own[1], &rmem_max.get()]));
        rows.push(row([&"", &"window scale", &s.window_scale.bits()]));
        rows.push(row([&"sender", &"net.ipv4.tcp_wmem[2]", &s.tcp_wmem_max.get()]));
        let scope = match s.autotuning_reaches() {
            true => {
                "tcp_rmem and tcp_wmem count memory, including packet overhead; the kernel doubles SO_RCVBUF to make room for it. tcp_rmem \
                 and tcp_wmem apply to every connection of a host, SO_RCVBUF to one."
            }
            false => {
                "tcp_rmem[2] has no effect here, as a connection starts with the larger tcp_rmem[1]. tcp_wmem applies to every \
                 connection of a host."
            }
        };
        format!(
            "Settings for this window on Linux {kernel}:\n{}{}",
            table(2, &rows),
            wrap(&format!("  {scope}"), width, 2)
        )
    }

    /// The advice as JSON.
    pub fn json(&self) -> Value {
        let mut out = Map::new();
        out.insert("connections".into(), self.connections.into());
        out.insert("sweet_spot_low_bytes".into(), self.sweet_spot.low.get().into());
        out.insert("sweet_spot_high_bytes".into(), self.sweet_spot.high.get().into());
        for c in &self.bdps {
            out.insert(format!("{}_bytes", c.name), json!(c.window.map(Bytes::get)));
        }
        out.insert("recommended_bytes".into(), json!(self.recommended.window.map(Bytes::get)));
        for c in &self.wrong_by_two {
            out.insert(format!("{}_bytes", c.name), json!(c.window.map(Bytes::get)));
        }
        let (mut expected, mut sources) = (Map::new(), Map::new());
        let all = [&self.recommended].into_iter().chain(&self.wrong_by_two);
        for c in all.chain(&self.ends).chain(&self.bdps) {
            let name = if c.name == "hold" { "recommended" } else { c.name };
            expected.insert(name.into(), json!(c.rate.map(Rate::bits_per_second)));
            let source = if c.is_simulated { "simulation" } else { "closed form" };
            sources.insert(name.into(), c.rate.map(|_| source).into());
        }
        out.insert("expected_bps".into(), expected.into());
        out.insert("expected_by".into(), sources.into());
        let added = self.added_delay.map(|delay| delay.map(|d| d.as_secs_f64()));
        out.insert("added_delay_s".into(), json!({"recommended": added[0], "double": added[1]}));
        out.insert("loss_limited".into(), self.loss_limited.into());
        let fills = self.fills_path.map(|fills| {
            json!({"loss_rate": fills.loss, "connections": fills.connections, "bbr": fills.bbr})
        });
        out.insert("fills_path".into(), json!(fills));
        let closed = self.closed_form.map(Rate::bits_per_second);
        out.insert("closed_form_bps".into(), json!(closed));
        out.insert("congestion".into(), self.question.congestion.to_string().into());
        out.insert("simulated".into(), self.simulated.as_ref().map_or(Value::Null, simulated_json));
        let s = &self.settings;
        let settings = json!({
            "kernel": self.question.kernel.to_string(),
            "tcp_rmem_max_bytes": s.tcp_rmem_max.get(),
            "so_rcvbuf_bytes": s.so_rcvbuf.get(),
            "tcp_wmem_max_bytes": s.tcp_wmem_max.get(),
            "window_scale": s.window_scale.bits(),
            "granularity_bytes": s.granularity.get(),
        });
        out.insert("settings".into(), settings);
        let warnings: Vec<String> =
            self.own_warnings().chain(self.warnings.iter().cloned()).collect();
        out.insert("warnings".into(), json!(warnings));
        out.insert("assumptions".into(), json!(self.assumptions));
        let formulas: Vec<Value> = self.all_formulas().iter().map(Formula::json).collect();
        out.insert("formulas".into(), formulas.into());
        out.insert("sources".into(), SOURCES.into());
        out.into()
    }
}

/// The definitions of the six bandwidth-delay products.
fn products_in_words(width: usize) -> String {
    let products = [
        ("bdp1", "capacity C times T_m, the RTT without queues."),
        ("bdp2", "C times T_e, the RTT before the transfer, with the queues of cross traffic."),
        ("bdp3", "A, the available bandwidth, times T_m."),
        ("bdp4", "A times T_e."),
        ("bdp5", "BTC, the rate of an unlimited window, times T_a, its mean RTT."),
        (
            "bdp6",
            "more than path and buffer hold, so that W_c, the congestion window, decides alone.",
        ),
    ];
    products.map(|(name, words)| wrap(&format!("  {name}: {words}"), width, 4)).concat()
}

fn simulated_json(simulated: &TriedWindows) -> Value {
    let windows = simulated.windows.iter().map(|tried| {
        json!({
            "window_bytes": tried.window.get(),
            "rate_bps": tried.rate.bits_per_second(),
            "rate_error_bps": tried.rate_error.bits_per_second(),
            "rate_interval_bps": simulated.interval(tried).map(Rate::bits_per_second),
            "as_fast": tried.as_fast,
            "unsure": tried.is_unsure,
            "delay_s": tried.delay.as_secs_f64(),
            "loss_rate": tried.loss,
        })
    });
    json!({
        "seeds": simulated.seeds,
        "settling_s": simulated.settling.as_secs_f64(),
        "measured_s": simulated.measured.as_secs_f64(),
        "access_bps": simulated.access_rate.bits_per_second(),
        "cross": simulated.cross,
        "windows": windows.collect::<Vec<_>>(),
    })
}

impl TriedWindows {
    /// The rule of three: if none of N packets was lost, the loss is below 3 / N at 95 % confidence.
    fn lossless_words(&self) -> String {
        if self.windows.iter().all(|tried| tried.loss > 0.0) {
            return String::new();
        }
        let all = self.measured * self.seeds;
        format!(" A row without loss may still lose packets up to three times in {all} (95 %).")
    }
}

/// A loss share in percent; rare losses do not round to zero.
fn loss(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        percent if percent < 0.001 => "<0.001 %".to_owned(),
        percent => format!("{percent:.3} %"),
    }
}

pub(super) fn rate(rate: Option<Rate>) -> String {
    rate.map_or("not known".to_owned(), |r| r.to_string())
}

pub(super) fn size(bytes: Option<Bytes>) -> String {
    bytes.map_or("not known".to_owned(), |b| b.to_string())
}
