//! The committed header is the one that cbindgen makes.

use std::path::Path;

/// `UPDATE_HEADER=1 cargo test -p sweetspot-capi --test header` writes it.
#[test]
fn the_committed_header_matches_the_code() {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(crate_dir.join("cbindgen.toml")).unwrap();
    let mut generated = Vec::new();
    let bindings =
        cbindgen::Builder::new().with_config(config).with_src(crate_dir.join("src/lib.rs"));
    let sources = ["codes.rs", "types.rs"];
    let with =
        |builder: cbindgen::Builder, source| builder.with_src(crate_dir.join("src").join(source));
    sources.into_iter().fold(bindings, with).generate().unwrap().write(&mut generated);
    let generated = String::from_utf8(generated).unwrap();
    let header = crate_dir.join("include/sweetspot.h");
    if std::env::var_os("UPDATE_HEADER").is_some() {
        std::fs::write(&header, &generated).unwrap();
    }
    let committed = std::fs::read_to_string(&header).unwrap_or_default();
    assert!(
        committed == generated,
        "include/sweetspot.h is not what the code says; UPDATE_HEADER=1 cargo test -p sweetspot-capi --test header writes it"
    );
}
