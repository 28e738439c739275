//! The traffic and time that each client's measurements cost this end.

use std::collections::HashMap;
use std::sync::Mutex;

use sweetspot_linux::clock;
use sweetspot_units::{Bytes, Duration, Time};

use crate::limits::{MEASURE_BYTES, MEASURE_INTERVAL, MEASURE_TIME};
use crate::lock::lock;
use crate::{Result, TransferError};

/// The cost of one part of a measurement: bytes that this end sends, and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Cost {
    pub bytes: Bytes,
    pub time: Duration,
}

/// The accounts of all clients, by the names of their credentials.
#[derive(Default)]
pub(crate) struct MeasureAccounts(Mutex<HashMap<String, Spent>>);

/// One client's cost since its interval began.
#[derive(Default)]
struct Spent {
    since: Time,
    cost: Cost,
}

pub(crate) struct MeasureAccount<'a> {
    accounts: &'a MeasureAccounts,
    client: String,
}

impl MeasureAccounts {
    pub fn of(&self, client: String) -> MeasureAccount<'_> {
        MeasureAccount { accounts: self, client }
    }

    fn charge(&self, client: &str, requested: Cost, now: Time) -> Cost {
        let mut accounts = lock(&self.0);
        // Forget costs of past intervals.
        accounts.retain(|_, spent| now.since(spent.since) < MEASURE_INTERVAL);
        let fresh = Spent { since: now, cost: Cost::default() };
        let spent = &mut accounts.entry(client.to_owned()).or_insert(fresh).cost;
        let paid = Cost {
            bytes: requested.bytes.min(MEASURE_BYTES.saturating_sub(spent.bytes)),
            time: requested.time.min(MEASURE_TIME.saturating_sub(spent.time)),
        };
        spent.bytes += paid.bytes;
        spent.time += paid.time;
        paid
    }
}

impl MeasureAccount<'_> {
    /// Charges as much of `requested` as the account allows. Fails if the account is empty.
    pub fn charge(&self, requested: Cost) -> Result<Cost> {
        let paid = self.accounts.charge(&self.client, requested, clock::now());
        let is_empty = |paid, requested| paid == 0 && requested > 0;
        let empty = is_empty(paid.bytes.get(), requested.bytes.get())
            || is_empty(paid.time.as_nanos(), requested.time.as_nanos());
        if empty { Err(TransferError::MeasuredEnough) } else { Ok(paid) }
    }

    pub fn charge_in_full(&self, requested: Cost) -> Result<()> {
        let paid = self.charge(requested)?;
        if paid == requested { Ok(()) } else { Err(TransferError::MeasuredEnough) }
    }

    pub fn give_back(&self, unsent: Bytes) {
        if let Some(spent) = lock(&self.accounts.0).get_mut(&self.client) {
            spent.cost.bytes = spent.cost.bytes.saturating_sub(unsent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_an_hourly_budget_of_measurement_bytes_and_time() {
        let accounts = MeasureAccounts::default();
        let (start, second) = (Time::ZERO + Duration::from_secs(1), Duration::from_secs(1));
        let greedy = Cost { bytes: MEASURE_BYTES * 10, time: second };
        assert_eq!(accounts.charge("a", greedy, start).bytes, MEASURE_BYTES);
        assert_eq!(accounts.charge("a", greedy, start).bytes, Bytes::ZERO);
        assert_eq!(
            accounts.charge("b", greedy, start).bytes,
            MEASURE_BYTES,
            "others are not affected"
        );
        let slow = Cost { bytes: Bytes::ZERO, time: MEASURE_TIME };
        // Two seconds are already spent.
        assert_eq!(accounts.charge("a", slow, start).time + second + second, MEASURE_TIME);
        let later = start + MEASURE_INTERVAL;
        assert_eq!(accounts.charge("a", greedy, later).bytes, MEASURE_BYTES, "the next hour");
    }

    #[test]
    fn unsent_bytes_are_refunded() {
        let accounts = MeasureAccounts::default();
        let account = accounts.of("a".into());
        let all = Cost { bytes: MEASURE_BYTES, time: Duration::from_secs(1) };
        assert_eq!(account.charge(all).unwrap(), all);
        assert!(account.charge(all).is_err());
        account.give_back(Bytes::new(1_000));
        assert!(account.charge_in_full(all).is_err(), "not all of it is there");
        account.give_back(Bytes::new(1_000));
        let thousand = Cost { bytes: Bytes::new(1_000), time: Duration::ZERO };
        account.charge_in_full(thousand).unwrap();
    }
}
