use sweetspot_units::Rate;

/// Counts of consecutive epochs under a limit that binds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Streaks {
    /// Epochs with a lower rate than an unshared transfer has.
    pub(super) below: u32,
    /// Epochs with a rate far below it.
    pub(super) collapsed: u32,
    /// Epochs with a queue of cross traffic.
    pub(super) cross_queue_epochs: u32,
    /// Epochs without a queue, at the capacity's rate.
    pub(super) idle: u32,
    /// All epochs since the last change, and the sum of their rates.
    pub(super) judged: u32,
    pub(super) rates: Rate,
}

impl Streaks {
    /// Adds the rate of an epoch; returns the mean of all epochs since the last change.
    pub(super) fn judge(&mut self, rate: Rate) -> Rate {
        self.judged += 1;
        self.rates = self.rates + rate;
        self.rates.scaled(1.0 / f64::from(self.judged))
    }

    /// Forgets the rates of the earlier epochs.
    pub(super) fn reset_rates(&mut self) {
        (self.judged, self.rates) = (0, Rate::ZERO);
    }
}
