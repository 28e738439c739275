#!/bin/sh
# Compiles the simulator for the page of `sweetspot ui` and puts it where the program takes it in. Rust's target for it is
# optional: without it `sweetspot ui` lets its server simulate, and says so at its start.
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
# One that is the same keeps its date, so that nothing is built again for it.
cmp -s "$compiled" $place || cp "$compiled" $place
