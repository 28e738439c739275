use sweetspot_units::Rate;

/// Epochs in a row under a limit that binds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Streaks {
    /// Epochs with a rate below an unshared transfer's.
    pub(super) below: u32,
    /// ... far below it.
    pub(super) collapsed: u32,
    /// ... with a queue of other traffic.
    pub(super) others: u32,
    /// ... without a queue at a rate of the capacity.
    pub(super) idle: u32,
    /// All since the last change, and the sum of their rates.
    pub(super) judged: u32,
    pub(super) rates: Rate,
}

impl Streaks {
    /// Takes the rate of one more epoch; the mean of them all.
    pub(super) fn judge(&mut self, rate: Rate) -> Rate {
        self.judged += 1;
        self.rates = self.rates + rate;
        self.rates.scaled(1.0 / f64::from(self.judged))
    }

    /// Forgets the rates of the epochs before.
    pub(super) fn judge_anew(&mut self) {
        (self.judged, self.rates) = (0, Rate::ZERO);
    }
}
