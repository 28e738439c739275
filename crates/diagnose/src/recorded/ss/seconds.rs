//! Spaces readings with times in whole seconds.

use sweetspot_units::Duration;

use super::account::Account;

const SECOND: Duration = Duration::from_secs(1);

/// Spaces the readings of each connection evenly within their second, if all times are whole seconds. Returns whether it did.
pub fn spread<'a>(connections: impl Iterator<Item = &'a mut [Account]>) -> bool {
    let connections: Vec<_> = connections.collect();
    let is_whole =
        |account: &Account| account.sample.at.as_nanos().is_multiple_of(SECOND.as_nanos());
    if !connections.iter().all(|accounts| accounts.iter().all(is_whole)) {
        return false;
    }
    // A time that was printed once for several readings does not show when they were made.
    let is_own = |pair: &[Account]| pair[0].stamps < pair[1].stamps;
    let mut has_spread = false;
    for accounts in connections.into_iter().filter(|accounts| accounts.windows(2).all(is_own)) {
        has_spread |= spread_one(accounts);
    }
    has_spread
}

fn spread_one(accounts: &mut [Account]) -> bool {
    let without_time = accounts.iter().take_while(|account| account.stamps == 0).count();
    let mut seconds: Vec<_> =
        accounts[without_time..].chunk_by_mut(|a, b| a.sample.at == b.sample.at).collect();
    let most = seconds.iter().map(|readings| readings.len()).max().unwrap_or(0) as u64;
    let count = seconds.len();
    for (n, readings) in seconds.iter_mut().enumerate() {
        let here = readings.len() as u64;
        // The log begins and ends within a second.
        let is_partial = n == 0 || n + 1 == count;
        let spacing = SECOND / if is_partial { most } else { here };
        let missing = if n == 0 && count > 1 { spacing * (most - here) } else { Duration::ZERO };
        for (reading, place) in readings.iter_mut().zip(0_u64..) {
            reading.sample.at += missing + spacing * place;
        }
    }
    most > 1
}
