//! The text after the options in the help, with the members of an
//! [`EngineAnswer`](sweetspot_program::engine::EngineAnswer).

pub const AFTER: &str = "\
Examples:
  sweetspot run @elephants
  sweetspot run @elephants --engine theory
  sweetspot run @elephants --seed 2 --set transfer.0.sizing=sobas --json
  sweetspot run @elephants --series run.parquet --interval 10ms
  sweetspot run @elephants --series run.csv
  sweetspot run @elephants --out run.json
  sweetspot run @elephants --engine lab --set warmup=20s --set duration=20s
  sweetspot run @elephants --print > mine.toml
  sweetspot run @

`sweetspot run @` lists the scenarios that come with the program; `man
sweetspot-scenario` describes the file, its sizings among them. One of those is
sobas: it measures the path, and limits the window only where it has measured
that this costs no rate. The lines with times below a transfer are the actions
of its sizing, which that page explains, too.

Exit codes: 0 the run is complete; 1 it failed, or no transfer moved data in the
measured time; 2 the command line is wrong, or there is no such scenario; 3 no
closed form covers the scenario (--engine theory); 128+N signal N ended it.

Members of --json:
  scenario, engine, seed, version
                     the title, the engine, the seed, this program's version
  transfers          in the order of the scenario, each with:
    goodput_bps        payload acknowledged per second of the measured time
    rtt_mean_s, rtt_p99_s
    loss_rate, retransmitted_packets, timeouts
    window_final_bytes the last window
    completion_s       time to its last ACK; absent unless it finished
    sizing             as in the scenario
    events             actions of the sizing; the last five as they apply:
      at_s, kind, window_bytes, rate_bps, rtt_s, reason, congestion_to
                         at_s counts from the start of the run; a window that is
                         set before the transfer starts limits it from then on
  cross              entries of cross traffic, each with:
    kind, goodput_bps, forward_goodput_bps, reverse_goodput_bps
    loss_rate, retransmitted_packets, timeouts
    completed, completion_mean_s
                       transfers that finished, and their mean duration
  bottleneck         the narrow link, in the direction of the transfers' data:
    utilisation, utilisation_before
                       in the measured time, and before the first transfer
    loss_rate, queue_mean_packets, queue_max_packets, queue_delay_mean_s
  derivation         --engine theory:
    formulas           those used, each with:
      what, rule, numbers, source
    assumptions        of the formulas
  socket_memory      --engine lab: the kernel's memory of all sockets, means:
    receive_buffer_bytes, received_bytes, send_buffer_bytes, queued_bytes
  certificate        --engine lab; `sweetspot emulate --help` lists its members
  events             simulated events
  packets_forwarded  packets that the links sent
  wall_s             duration of the run on the clock

Names in _s are seconds, in _bps bit/s; rates of loss are shares of packets. An
unknown value is null. --out adds path and series, the time series.";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use sweetspot_scenario::{
        AppliedFormula, BottleneckOutcome, ControllerEvent, CrossOutcome, Derivation, Outcome,
        SocketMemoryOutcome, TransferOutcome,
    };

    use super::AFTER;
    use crate::verbs::members::{listed, written};

    /// An outcome in which every member is set, including those that are left out when empty.
    fn full() -> Outcome {
        let text = || "x".to_owned();
        let event = ControllerEvent {
            at_s: 1.0,
            kind: text(),
            window_bytes: Some(1),
            rate_bps: Some(1.0),
            rtt_s: Some(1.0),
            reason: Some(text()),
            congestion_to: Some(text()),
        };
        let transfer = TransferOutcome {
            goodput_bps: 1.0,
            rtt_mean_s: 1.0,
            rtt_p99_s: 1.0,
            loss_rate: 0.0,
            retransmitted_packets: 0,
            timeouts: 0,
            window_final_bytes: 1,
            completion_s: Some(1.0),
            sizing: text(),
            events: vec![event],
        };
        let cross = CrossOutcome {
            forward_goodput_bps: Some(1.0),
            reverse_goodput_bps: Some(1.0),
            ..CrossOutcome::default()
        };
        let formula =
            AppliedFormula { what: text(), rule: text(), numbers: text(), source: text() };
        let memory = SocketMemoryOutcome {
            receive_buffer_bytes: 1.0,
            received_bytes: 1.0,
            send_buffer_bytes: 1.0,
            queued_bytes: 1.0,
        };
        Outcome {
            transfers: vec![transfer],
            cross: vec![cross],
            bottleneck: BottleneckOutcome::default(),
            derivation: Some(Derivation { formulas: vec![formula], assumptions: vec![text()] }),
            socket_memory: Some(memory),
            ..Outcome::default()
        }
    }

    #[test]
    fn the_help_lists_exactly_the_json_members() {
        let (_, list) = AFTER.split_once("Members of --json:").unwrap();
        let mut members = written(&full());
        // Only outcomes of the lab have a certificate.
        members.insert("certificate".to_owned());
        assert_eq!(listed(list), members);
        let page = include_str!("../../../../../docs/scenario.md");
        let (_, page) = page.split_once("## The outcome").unwrap();
        let lacks: BTreeSet<&String> =
            members.iter().filter(|name| !page.contains(&format!("`{name}"))).collect();
        assert!(lacks.is_empty(), "docs/scenario.md lacks {lacks:?}");
    }
}
