//! Prints the page of a synthetic outcome, for work on the page:
//! `cargo run -p sweetspot-report --example page > page.html`.

#[path = "../tests/synthetic/mod.rs"]
mod synthetic;

fn main() {
    print!("{}", sweetspot_report::page(&synthetic::outcome()));
}
