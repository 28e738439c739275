/// The amount of simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StudyEffort {
    /// Measured seconds per run for a row of Table I; a third of this for links of 100 Mbit/s.
    pub seconds: u64,
    /// Runs per buffer for a row.
    pub seeds: u64,
    /// Buffers per row.
    pub buffers: usize,
    /// Measured seconds on the testbed's gigabit link.
    pub testbed_seconds: u64,
    /// Runs per buffer on the testbed.
    pub testbed_seeds: u64,
    /// Seconds of the testbed run that Figure 4 samples.
    pub load_seconds: u64,
    /// Measured seconds for a cell of section VI-B.
    pub grid_seconds: u64,
    /// Runs per buffer for a cell.
    pub grid_seeds: u64,
    /// Buffers per cell.
    pub grid_buffers: usize,
}

impl StudyEffort {
    /// The effort used for docs/results/router.md.
    pub const DOCUMENT: StudyEffort = StudyEffort {
        seconds: 150,
        seeds: 5,
        buffers: 16,
        testbed_seconds: 30,
        testbed_seeds: 5,
        load_seconds: 240,
        grid_seconds: 100,
        grid_seeds: 4,
        grid_buffers: 8,
    };
    /// About a minute of simulation.
    pub const QUICK: StudyEffort = StudyEffort {
        seconds: 60,
        seeds: 1,
        buffers: 12,
        testbed_seconds: 10,
        testbed_seeds: 1,
        load_seconds: 60,
        grid_seconds: 25,
        grid_seeds: 1,
        grid_buffers: 6,
    };
}
