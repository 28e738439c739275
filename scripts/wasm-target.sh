#!/bin/sh
# Whether Rust's target for WebAssembly is here; where it is not, it is got.
set -eu
target=wasm32-unknown-unknown
have() {
    [ -d "$(rustc --print sysroot)/lib/rustlib/$target/lib" ]
}
have || rustup target add $target >/dev/null 2>&1 || true
have
