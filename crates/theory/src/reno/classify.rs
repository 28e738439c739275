//! The model for a flow: Prasad, Dovrolis and Thottan, end of §IV.

use sweetspot_units::{Duration, Time};

use crate::Result;
use crate::error::require;

/// The throughput model that describes a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowModel {
    /// Mostly in slow start: [`super::s_model`].
    S,
    /// Mostly in congestion avoidance: [`super::l_model`].
    L,
}

// Router-buffer §IV: a congestion event is one or more losses, separated from other losses by at
// least two RTTs.
/// The number of congestion events among `losses`, which are in chronological order.
///
/// # Errors
/// If `rtt` is zero or the losses are not in order.
pub fn congestion_events(losses: &[Time], rtt: Duration) -> Result<usize> {
    require(rtt > Duration::ZERO, "RTT", rtt, "it must be above zero")?;
    let ordered = losses.windows(2).all(|pair| pair[0] <= pair[1]);
    require(ordered, "losses", "as given", "in order of time")?;
    let gap = rtt * 2;
    let later = losses.windows(2).filter(|pair| pair[1].since(pair[0]) >= gap).count();
    Ok(later + usize::from(!losses.is_empty()))
}

// Router-buffer §IV: at most four congestion events are close to the S-model, five or more to
// the L-model.
/// The model for a flow with this number of congestion events.
pub fn model(congestion_events: usize) -> FlowModel {
    if congestion_events <= 4 { FlowModel::S } else { FlowModel::L }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn events(ms: &[u64]) -> usize {
        let times: Vec<Time> = ms.iter().map(|t| Time::from_nanos(t * 1_000_000)).collect();
        congestion_events(&times, RTT).unwrap()
    }

    #[test]
    fn losses_within_two_rtts_are_one_event() {
        assert_eq!(events(&[]), 0);
        assert_eq!(events(&[5]), 1);
        // Losses 199 ms apart are one event, 200 ms apart two; each loss extends its event.
        assert_eq!(events(&[0, 199]), 1);
        assert_eq!(events(&[0, 200]), 2);
        assert_eq!(events(&[0, 150, 300, 450]), 1);
        assert_eq!(events(&[0, 10, 1000, 1010, 3000]), 3);
    }

    #[test]
    fn the_fifth_event_makes_a_flow_long() {
        assert_eq!([0, 1, 4].map(model), [FlowModel::S; 3]);
        assert_eq!([5, 100].map(model), [FlowModel::L; 2]);
    }

    #[test]
    fn losses_out_of_order_are_rejected() {
        let back = [Time::from_nanos(2), Time::from_nanos(1)];
        assert!(congestion_events(&back, RTT).is_err());
        assert!(congestion_events(&[], Duration::ZERO).is_err());
    }
}
