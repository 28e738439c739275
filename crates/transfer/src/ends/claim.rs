//! The claim of one transfer on its client's credential. A one-time credential has at most one claim at a time.

use std::sync::Mutex;

use sweetspot_protocol::clients::Client;

use crate::Result;
use crate::ends::uses::Uses;
use crate::ends::work::Ended;
use crate::lock::lock;

/// One session's claim on a credential. It ends with the session. The file of uses then records that the transfer broke,
/// unless the transfer completed or the claim was released.
pub(crate) struct Claim<'a> {
    uses: &'a Mutex<Uses>,
    /// The credential's ID; `None` if the credential is valid for any number of transfers.
    credential: Option<String>,
    /// The transfer that used the credential before this one.
    before: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unavailable {
    /// A transfer has completed with the one-time credential.
    Spent,
    /// Another transfer is using the credential.
    InUse,
}

impl<'a> Claim<'a> {
    /// Claims the credential of `client` for `transfer`, and records the claim on disk before it takes effect. Of several
    /// concurrent transfers, one gets it. A broken transfer loses its claim to any other, because its sender may have been
    /// started again.
    pub fn make(
        uses: &'a Mutex<Uses>,
        client: &Client,
        transfer: &str,
    ) -> Result<Result<Claim<'a>, Unavailable>> {
        if !client.once {
            return Ok(Ok(Claim { uses, credential: None, before: None }));
        }
        let (mut locked, id) = (lock(uses), client.credential.id());
        if locked.of(&id).completed {
            return Ok(Err(Unavailable::Spent));
        }
        if locked.running.get(&id).is_some_and(|(running, _)| running != transfer) {
            return Ok(Err(Unavailable::InUse));
        }
        let before = locked.change(&id, |used| used.transfer.replace(transfer.to_owned()))?;
        locked.running.entry(id.clone()).or_insert_with(|| (transfer.to_owned(), 0)).1 += 1;
        Ok(Ok(Claim { uses, credential: Some(id), before }))
    }

    /// Records that the transfer has completed, which spends a one-time credential. Call this before telling the peer.
    pub fn complete(&self) -> Result<()> {
        let Some(id) = &self.credential else { return Ok(()) };
        lock(self.uses).change(id, |used| used.completed = true)
    }

    /// Restores the credential's previous state: the transfer wrote nothing.
    pub fn release(&self) -> Result<()> {
        let Some(id) = &self.credential else { return Ok(()) };
        let mut uses = lock(self.uses);
        // A newer session of the transfer may be writing.
        let alone = uses.running.get(id).is_some_and(|(_, sessions)| *sessions == 1);
        uses.change(id, |used| {
            if alone && !used.completed {
                used.transfer.clone_from(&self.before);
            }
        })
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let Some(id) = &self.credential else { return };
        let mut uses = lock(self.uses);
        if let Some((_, sessions)) = uses.running.get_mut(id) {
            *sessions -= 1;
            if *sessions == 0 {
                uses.running.remove(id);
            }
        }
    }
}

/// Records on disk how far the transfer used its client's credential.
pub(crate) fn settle(claim: Option<&Claim<'_>>, ended: Ended) -> Ended {
    let Some(claim) = claim else { return ended };
    let Ended { result, wrote } = ended;
    let result = match result {
        Ok(summary) if !summary.dry_run => claim.complete().map(|()| summary),
        result => {
            // If this fails, the file still says that a transfer broke, which leaves the credential usable, too.
            let _ = if wrote && result.is_err() { Ok(()) } else { claim.release() };
            result
        }
    };
    Ended { result, wrote }
}
