use sweetspot_units::Bytes;

/// The options of a [`Tuner`](crate::Tuner).
#[derive(Debug, Clone)]
pub struct TunerOptions {
    /// The limit on the sum of all windows; `None`: no limit.
    pub memory: Option<Bytes>,
    /// Whether uploads are paced.
    pub uploads: bool,
    /// Whether decisions are only reported, not applied.
    pub dry_run: bool,
    /// The largest window that this host allows a connection.
    pub max_window: Bytes,
}
