use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A directory with one file per result, so that a long benchmark can be run in parts.
pub struct Store {
    dir: PathBuf,
}

impl Store {
    /// Opens the store in `dir`, which is created if missing.
    pub fn open(dir: &Path) -> Result<Store, String> {
        fs::create_dir_all(dir).map_err(|e| format!("cannot make {}: {e}", dir.display()))?;
        Ok(Store { dir: dir.to_owned() })
    }

    /// The result `name`; `None` if there is none or it cannot be parsed (because it comes from
    /// another version).
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
        // Run names may contain colons and pluses, which every relevant file system allows.
        self.dir.join(name.replace('/', "_") + ".json")
    }
}
