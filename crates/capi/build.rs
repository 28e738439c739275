//! Sets the shared library's soname: programs need the version of its interface at run time.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libsweetspot.so.1");
}
