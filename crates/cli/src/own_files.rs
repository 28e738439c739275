//! The directories of the user's files, by the XDG Base Directory Specification.

use std::env;
#[cfg(target_os = "linux")]
use std::path::Path;
use std::path::PathBuf;

#[cfg(target_os = "linux")]
use sweetspot_program::print::Shown;
#[cfg(target_os = "linux")]
use sweetspot_transfer::Identity;

/// The directory of persistent state; systemd sets it in STATE_DIRECTORY.
#[cfg(target_os = "linux")]
pub fn state_directory() -> Result<PathBuf, String> {
    match env::var_os("STATE_DIRECTORY").filter(|path| !path.is_empty()) {
        Some(path) => Ok(path.into()),
        None => own("XDG_STATE_HOME", ".local/state"),
    }
}

/// The directory of the user's settings.
pub fn config_directory() -> Result<PathBuf, String> {
    own("XDG_CONFIG_HOME", ".config")
}

/// The user's identity from `path`, which must exist, or from the default file, which is created if missing.
#[cfg(target_os = "linux")]
pub fn existing_identity(path: Option<&Path>) -> Result<Identity, Box<dyn std::error::Error>> {
    if let Some(path) = path.filter(|path| !path.exists()) {
        let path = path.shown();
        return Err(format!(
            "--identity {path}: there is no such file; `sweetspot serve key --identity {path}` creates it"
        )
        .into());
    }
    own_identity(path)
}

/// The user's identity from `path` or the default file, which is created if missing. The directory of `path`
/// must exist.
#[cfg(target_os = "linux")]
pub fn own_identity(path: Option<&Path>) -> Result<Identity, Box<dyn std::error::Error>> {
    let usual = || config_directory().map(|dir| dir.join("identity.pem"));
    let directory = path.and_then(Path::parent).filter(|dir| !dir.as_os_str().is_empty());
    if let (Some(path), Some(directory)) = (path, directory)
        && !directory.exists()
    {
        let (path, directory) = (path.shown(), directory.shown());
        return Err(format!(
            "--identity {path}: there is no directory {directory}; create it, or correct the path"
        )
        .into());
    }
    let path = path.map_or_else(usual, |path| Ok(path.to_owned()))?;
    Ok(Identity::load_or_make(&path)?)
}

fn own(variable: &str, below_home: &str) -> Result<PathBuf, String> {
    // The specification requires relative paths to be ignored.
    let named = env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    named
        .or_else(|| home().map(|home| home.join(below_home)))
        .map(|directory| directory.join("sweetspot"))
        .ok_or_else(|| format!("neither HOME nor {variable} is set; set one"))
}
