//! Applies the results of a simulation to the advice.

use sweetspot_theory::Packets;

use super::advice::{Basis, BufferChoice, RouterAdvice, Rule};
use super::formulas::square_root;
use super::model::simulated_transfers;
use super::plan::{advise, by_formula, for_flows, in_favour_of, smallest};
use super::simulated::Simulated;
use super::{Favour, buffers};

impl RouterAdvice {
    /// The buffer for bulk transfers on an overloaded link: between the formula's and the rule's, C T. `None` unless `chosen` is
    /// the rule's.
    fn crowded(&self, simulated: &Simulated, chosen: usize) -> Option<Packets> {
        let share = simulated.share_of_rule();
        let is_rule = chosen == simulated.rule && chosen > simulated.advised;
        if self.question.favour != Favour::Throughput || !is_rule || share == 1.0 {
            return None;
        }
        let rule = simulated.buffers.get(chosen)?.buffer;
        let own = self.two_rules.as_ref().map_or(&self.recommended, |two| &two.transfers);
        buffers::between(rule, own.buffer, share).ok()
    }

    /// The buffer for flows that persist, or may: between the simulator's choice for transfers, `chosen`, and C T / sqrt(n), but
    /// large enough to use almost as much of the link as `chosen`.
    fn persistent(&mut self, simulated: &Simulated, chosen: Option<Packets>) -> Option<Packets> {
        let is_bulk = self.question.favour == Favour::Throughput;
        let two = self.two_rules.as_mut().filter(|two| is_bulk && two.persistence > 0.0)?;
        if let Some(buffer) = chosen {
            two.transfers = by_formula(&self.question, buffer).ok()?;
        }
        let rule = simulated.buffers.get(simulated.rule)?.buffer;
        let smallest = smallest(self.question.favour, rule).ok()?;
        let lasting = buffers::larger(two.persistent.buffer, smallest);
        let transfers = two.transfers.buffer;
        let between = buffers::between(lasting, transfers, two.persistence).ok()?;
        Some(buffers::larger(between, simulated.filling(transfers)?))
    }

    /// This advice with the numbers of `simulated` instead of the formulas', and with its buffer if it calls for another one. A
    /// simulation of only a small part of the link does not change the buffer.
    #[must_use]
    pub fn decided_by(mut self, simulated: Simulated) -> RouterAdvice {
        if simulated.decides() {
            self.move_buffer(&simulated);
        }
        if simulated.at(self.recommended.buffer).is_some() {
            self.recommended = self.recommended.simulated(&simulated);
            self.transfers = simulated_transfers(&self.question, self.size_mean);
            if self.question.has_room() && simulated.decides() && self.basis != Basis::Floor {
                self.count_flows();
            }
        }
        self.simulated = Some(simulated);
        self
    }

    /// Sizes the rules for n flows by the number that was simulated: with spare capacity, it is less than the number that would
    /// fill the link.
    fn count_flows(&mut self) {
        let n = self.recommended.flows;
        let Ok(choices) = for_flows(&self.question, n) else { return };
        for choice in choices {
            if let Some(old) = self.rules.iter_mut().find(|old| old.rule == choice.rule) {
                *old = choice;
            }
        }
        self.flows = n;
        let Some(bdp) = self.of_rule(Rule::BandwidthDelay) else { return };
        let root = square_root(n, bdp.buffer);
        if let Some(old) = self.formulas.iter_mut().find(|old| old.what == root.what) {
            *old = root;
        }
    }

    /// Whether the aim of a low latency would get a smaller buffer, by formula or by the same simulation.
    pub(super) fn is_smaller_for_latency(&self) -> bool {
        let question = in_favour_of(Favour::Latency, &self.question, self.size_mean);
        let Ok(mut latency) = advise(&question) else { return false };
        if let Some(simulated) = self.decided() {
            latency.move_buffer(&simulated.with_formula(latency.recommended.buffer));
        }
        latency.recommended.buffer < self.recommended.buffer
    }

    /// Takes the buffer that `simulated` calls for, but no more than bulk transfers would get.
    fn move_buffer(&mut self, simulated: &Simulated) {
        if self.question.favour == Favour::Throughput {
            return self.move_for_favour(simulated);
        }
        let question = in_favour_of(Favour::Throughput, &self.question, self.size_mean);
        let Ok(mut bulk) = advise(&question) else { return };
        bulk.move_for_favour(&simulated.with_formula(bulk.recommended.buffer));
        self.most = bulk.recommended.buffer;
        self.move_for_favour(simulated);
        if self.recommended.buffer > self.most {
            self.take(self.most, bulk.basis);
            self.two_rules = bulk.two_rules;
        }
    }

    /// Takes the buffer that `simulated` calls for in favour of the transfers that the question names.
    fn move_for_favour(&mut self, simulated: &Simulated) {
        if self.question.favour == Favour::Latency {
            if let Some(range) = simulated.keeping(self.question.favour, self.most) {
                self.take(range.low, Basis::RangeLow);
            }
            return;
        }
        let decided = simulated.chosen(self.question.favour, self.most);
        let chosen = decided.unwrap_or(simulated.advised);
        let crowd = self.crowded(simulated, chosen);
        let tried = |index: usize| simulated.buffers.get(index).map(|tried| tried.buffer);
        let (buffer, basis) =
            match (self.persistent(simulated, crowd.or(decided.and_then(tried))), crowd) {
                (Some(buffer), _) => (Some(buffer), self.basis),
                (None, Some(buffer)) => (Some(buffer), Basis::Crowd),
                // The formula's own buffer was rounded to a whole packet of the simulated link.
                (None, None) if chosen == simulated.advised => return,
                (None, None) => (tried(chosen), Basis::Simulator),
            };
        if let Some(buffer) = buffer {
            self.take(buffer, basis);
        }
    }

    fn take(&mut self, buffer: Packets, basis: Basis) {
        self.basis = basis;
        let bytes = buffer.in_bytes(self.question.packet);
        let worst_delay = bytes / self.question.rate;
        let rule = Rule::Recommended;
        self.recommended =
            BufferChoice { rule, buffer, bytes, worst_delay, ..self.recommended.clone() };
    }
}
