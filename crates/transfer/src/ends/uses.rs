//! The usage of each credential. It survives restarts.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sweetspot_linux::file;

use crate::wire::identity::OWNER_ONLY;
use crate::{Result, TransferError};

/// The usage of all credentials: the part on disk, and the present attempts.
#[derive(Default)]
pub(crate) struct Uses {
    path: Option<PathBuf>,
    by_credential: BTreeMap<String, Use>,
    /// Codes that are being tried.
    pub tried: HashSet<String>,
    /// One-time credentials in use: the transfer, and the number of its sessions.
    pub running: HashMap<String, (String, usize)>,
}

/// The usage of one credential.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Use {
    /// The last transfer that used a one-time credential: it is running, has broken or has completed. `None`: unused.
    pub transfer: Option<String>,
    /// Whether that transfer has completed, which spends the credential.
    #[serde(alias = "ended")]
    pub completed: bool,
    /// Attempts at a code that did not succeed, including the one in progress.
    pub wrong: u32,
}

impl Uses {
    /// The usage stored at `path`.
    pub fn load(path: PathBuf) -> Result<Uses> {
        let failed = |source| TransferError::State { path: path.clone(), source };
        let by_credential = match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).map_err(|e| failed(io::Error::other(e)))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(failed(error)),
        };
        Ok(Uses { path: Some(path), by_credential, ..Uses::default() })
    }

    /// The usage of the credential with this id.
    pub fn of(&self, id: &str) -> Use {
        self.by_credential.get(id).cloned().unwrap_or_default()
    }

    /// Changes a usage atomically, and writes it to disk before the change takes effect.
    pub fn change<T>(&mut self, id: &str, change: impl FnOnce(&mut Use) -> T) -> Result<T> {
        let before = self.of(id);
        let mut after = before.clone();
        let changed = change(&mut after);
        if before != after {
            self.set(id, after);
            if let Err(error) = self.save() {
                self.set(id, before);
                return Err(error);
            }
        }
        Ok(changed)
    }

    fn set(&mut self, id: &str, used: Use) {
        if used == Use::default() {
            self.by_credential.remove(id);
        } else {
            self.by_credential.insert(id.to_owned(), used);
        }
    }

    fn save(&self) -> Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let failed = |source| TransferError::State { path: path.clone(), source };
        let text = serde_json::to_vec(&self.by_credential).map_err(|e| failed(e.into()))?;
        file::replace(path, &text, OWNER_ONLY).map_err(failed)
    }
}
