use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Results in a directory, one file each, so that a long benchmark can be run in parts.
pub struct Store {
    dir: PathBuf,
}

impl Store {
    /// A store in `dir`, which is made if it is missing.
    pub fn open(dir: &Path) -> Result<Store, String> {
        fs::create_dir_all(dir).map_err(|e| format!("cannot make {}: {e}", dir.display()))?;
        Ok(Store { dir: dir.to_owned() })
    }

    /// The result `name`; `None` if there is none or it cannot be read (because it is of another
    /// version).
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        serde_json::from_str(&fs::read_to_string(self.file(name)).ok()?).ok()
    }

    /// Writes the result `name`.
    pub fn put<T: Serialize>(&self, name: &str, result: &T) -> Result<(), String> {
        let file = self.file(name);
        let describe = |why: String| format!("cannot keep a result in {}: {why}", file.display());
        let text = serde_json::to_string_pretty(result).map_err(|e| describe(e.to_string()))?;
        fs::write(&file, text).map_err(|e| describe(e.to_string()))
    }

    fn file(&self, name: &str) -> PathBuf {
        // Names of variants have colons and pluses, which every file system here takes.
        self.dir.join(name.replace('/', "_") + ".json")
    }
}
