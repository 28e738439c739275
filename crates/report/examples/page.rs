//! Prints the page of a made-up outcome, for whoever works on the page:
//! `cargo run -p sweetspot-report --example page > page.html`.

#[path = "../tests/synthetic/mod.rs"]
mod synthetic;

fn main() {
    print!("{}", sweetspot_report::page(&synthetic::outcome()));
}
