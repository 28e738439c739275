use crate::Time;

/// The time at which something is due, or never.
///
/// Deadlines are ordered: never is later than any time, so the earlier of two deadlines is their
/// minimum. A deadline takes eight bytes, like a [`Time`]; `Option<Time>` takes sixteen.
///
/// ```
/// use sweetspot_units::{Deadline, Time};
///
/// let noon = Time::from_nanos(12);
/// assert_eq!(Deadline::NEVER.min(noon.into()).time(), Some(noon));
/// assert!(Deadline::at(noon).has_passed(noon));
/// assert_eq!(Deadline::NEVER.time(), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Deadline(Time);

impl Deadline {
    /// Nothing is due.
    pub const NEVER: Deadline = Deadline(Time::MAX);

    /// Due at `time`. [`Time::MAX`] is later than any event and becomes [`Deadline::NEVER`].
    pub const fn at(time: Time) -> Deadline {
        Deadline(time)
    }

    /// The time at which it is due, `None` for never.
    #[inline]
    pub fn time(self) -> Option<Time> {
        self.is_set().then_some(self.0)
    }

    /// Whether it is due at some time.
    #[inline]
    pub fn is_set(self) -> bool {
        self != Deadline::NEVER
    }

    /// Whether it is due before `time`.
    #[inline]
    pub fn is_before(self, time: Time) -> bool {
        self.0 < time
    }

    /// Whether it is due at `now` or was due before.
    #[inline]
    pub fn has_passed(self, now: Time) -> bool {
        self.0 <= now
    }
}

impl Default for Deadline {
    fn default() -> Deadline {
        Deadline::NEVER
    }
}

impl From<Time> for Deadline {
    #[inline]
    fn from(time: Time) -> Deadline {
        Deadline::at(time)
    }
}

impl From<Option<Time>> for Deadline {
    #[inline]
    fn from(time: Option<Time>) -> Deadline {
        time.map_or(Deadline::NEVER, Deadline::at)
    }
}
