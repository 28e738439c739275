//! Gives the shared library its name at run time: programs need the version of its interface.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libsweetspot.so.1");
}
