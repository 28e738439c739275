use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The compiled program.
const PROGRAM: &str = "target/ns3/dumbbell";

/// In the order required by a linker.
const LIBRARIES: [&str; 5] =
    ["-lns3-applications", "-lns3-point-to-point", "-lns3-internet", "-lns3-network", "-lns3-core"];

/// Compiles the ns-3 program against the installed library. Returns its path, or why it cannot be
/// compiled.
pub fn build(source: &Path) -> Result<PathBuf, String> {
    err!("compiling {} ...", source.display());
    let program = PathBuf::from(PROGRAM);
    if let Some(folder) = program.parent() {
        fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    let output = Command::new("g++")
        .args(["-std=c++17", "-O3", "-o"])
        .args([&program, source])
        .args(LIBRARIES)
        .output()
        .map_err(|e| format!("g++: {e}; apt-get install g++ libns3-dev"))?;
    if output.status.success() {
        return Ok(program);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let error = stderr.lines().find(|line| line.contains("error")).unwrap_or("it failed");
    Err(format!("g++: {error}; apt-get install libns3-dev"))
}
