//! Bundles the repository's scenarios into a table of their names and texts.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root =
        Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../scenarios").canonicalize()?;
    println!("cargo::rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    collect(&root, &mut files)?;
    files.sort();
    let mut table =
        String::from("/// Name and text of each.\npub const SCENARIOS: &[(&str, &str)] = &[\n");
    for file in files {
        let name = file.strip_prefix(&root)?.with_extension("");
        writeln!(table, "    ({:?}, include_str!({:?})),", name.display().to_string(), file)?;
    }
    table += "];\n";
    fs::write(Path::new(&env::var("OUT_DIR")?).join("scenarios.rs"), table)?;
    Ok(())
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            println!("cargo::rerun-if-changed={}", path.display());
            collect(&path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "toml") {
            files.push(path);
        }
    }
    Ok(())
}
