//! Loss with many flows: R. Morris, "TCP Behavior with Many Flows", ICNP 1997, and "Scalable TCP
//! Congestion Control", INFOCOM 2000.

use sweetspot_units::Probability;

use crate::Result;
use crate::error::{probability, require};
use crate::packets::Packets;

// Morris 2000: the mean window of a flow is w = 0.87 / sqrt(l).
/// The mean window of one Reno flow (one ACK for two segments) at loss `loss`.
///
/// # Errors
/// If `loss` is zero.
pub fn mean_window(loss: Probability) -> Result<Packets> {
    require(loss.get() > 0.0, "loss", loss, "above zero; without loss the window only grows")?;
    Packets::new(0.87 / libm::sqrt(loss.get()))
}

// Morris 1997: l = 0.76 (n / S)^2, which is the law above with w = S / n (0.87^2 = 0.757).
/// The loss caused by `flows` n persistent flows if pipe and buffer together hold `storage` S packets. It grows with the
/// square of the number of flows.
///
/// # Errors
/// If there is no flow, or the storage is below two packets per flow: then flows are mostly in timeouts, and the law
/// overstates their rates.
pub fn loss(flows: u64, storage: Packets) -> Result<Probability> {
    require(flows > 0, "flows", flows, "it must be 1 or more")?;
    let per_flow = storage.get() / flows as f64;
    let wanted = "2 packets per flow or more; with fewer the flows live in timeouts";
    require(per_flow >= 2.0, "storage", format!("{per_flow:.2} packets per flow"), wanted)?;
    // At 2 packets per flow this is 0.19, so it is always a probability.
    probability("loss", 0.76 / (per_flow * per_flow))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(n: f64) -> Packets {
        Packets::new(n).unwrap()
    }

    #[test]
    fn the_loss_of_a_hundred_flows_matches_a_hand_calculation() {
        // 1000 packets for 100 flows: 10 per flow, 0.76 / 100 = 0.76 %.
        assert!((loss(100, packets(1000.0)).unwrap().get() - 0.0076).abs() < 1e-12);
    }

    #[test]
    fn loss_grows_with_the_square_of_the_number_of_flows() {
        let at = |n| loss(n, packets(1e6)).unwrap().get();
        assert!((at(2000) / at(1000) - 4.0).abs() < 1e-9);
    }

    #[test]
    fn the_two_papers_agree() {
        let p = loss(50, packets(1000.0)).unwrap();
        // S/n = 20; the difference of 0.87 and sqrt(0.76) = 0.8718 is 0.2 %.
        assert!((mean_window(p).unwrap().get() / 20.0 - 1.0).abs() < 0.003);
    }

    #[test]
    fn flows_without_storage_are_not_covered() {
        assert!(loss(0, packets(10.0)).is_err());
        assert!(loss(6, packets(10.0)).is_err());
        assert!(mean_window(Probability::ZERO).is_err());
    }
}
