#!/bin/sh
# Compiles the simulator for the page of `sweetspot ui` and puts it where the program embeds it. Rust's target for it is
# optional: without it, the server of `sweetspot ui` runs the simulations, and says so when it starts.
set -eu
cd "$(dirname "$0")/.."
target=wasm32-unknown-unknown
place=crates/ui/wasm/sweetspot.wasm

if ! scripts/wasm-target.sh; then
    rm -f $place
    exit 0
fi
cargo build --profile page --locked --lib -p sweetspot-wasm --target $target
compiled=${CARGO_TARGET_DIR:-target}/$target/page/sweetspot_wasm.wasm
# An unchanged file keeps its modification time, so that nothing is rebuilt.
cmp -s "$compiled" $place || cp "$compiled" $place
