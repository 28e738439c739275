//! Builds the book: `cargo run -p sweetspot-book -- DOCS SITE`. Broken links are errors.

use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(docs), Some(site)) = (arguments.next(), arguments.next()) else {
        return Err("usage: sweetspot-book DOCS SITE".into());
    };
    sweetspot_book::build(&docs, &site)?;
    let broken = sweetspot_book::broken_links(&site)?;
    if !broken.is_empty() {
        return Err(format!("links of the book lead nowhere:\n{}", broken.join("\n")).into());
    }
    println!("{}", site.join("index.html").display());
    Ok(())
}
