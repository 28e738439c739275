#!/bin/sh
# Checks for Rust's WebAssembly target, and installs it if it is missing.
set -eu
target=wasm32-unknown-unknown
have() {
    [ -d "$(rustc --print sysroot)/lib/rustlib/$target/lib" ]
}
have || rustup target add $target >/dev/null 2>&1 || true
have
