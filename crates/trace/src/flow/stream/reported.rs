use sweetspot_units::Rate;

/// Facts about a sender that its kernel knows and packets do not show.
#[derive(Debug, Clone, Copy, Default)]
pub struct SenderReport {
    /// SO_MAX_PACING_RATE, if set.
    pub pacing_limit: Option<Rate>,
    /// Whether the send buffer stopped the program for most of the time with data in flight.
    pub is_stopped_by_buffer: bool,
    /// Whether data waited to be sent nearly all the time, so that pauses are not the program's.
    pub keeps_data_waiting: bool,
}
