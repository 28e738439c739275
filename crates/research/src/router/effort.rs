/// How much is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StudyEffort {
    /// Seconds that are measured of each run of a row of Table I; of links of 100 Mbit/s a third.
    pub seconds: u64,
    /// Runs per buffer of a row.
    pub seeds: u64,
    /// Buffers per row.
    pub buffers: usize,
    /// Seconds of the testbed's gigabit link.
    pub testbed_seconds: u64,
    /// Runs per buffer of the testbed.
    pub testbed_seeds: u64,
    /// Seconds of the testbed's run that Figure 4 samples.
    pub load_seconds: u64,
    /// Seconds of a cell of section VI-B.
    pub grid_seconds: u64,
    /// Runs per buffer of a cell.
    pub grid_seeds: u64,
    /// Buffers per cell.
    pub grid_buffers: usize,
}

impl StudyEffort {
    /// The effort behind docs/results/router.md.
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
    /// Within a minute or so.
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
