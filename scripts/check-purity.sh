#!/bin/sh
# The purity law: pure crates must build for a target without an operating system.
set -eu
cd "$(dirname "$0")/.."

target=wasm32-unknown-unknown
pure=
for crate in units statistics path sizing measure protocol control scenario theory advise trace diagnose tcp sim experiment wasm; do
    [ -d "crates/$crate" ] && pure="$pure -p sweetspot-$crate"
done

if scripts/wasm-target.sh; then
    # shellcheck disable=SC2086 # the list is meant to be split
    cargo check --locked --lib --target $target $pure
    echo "purity: the pure crates compile for $target:$(echo "$pure" | sed 's/ -p sweetspot-/ /g')"
else
    # shellcheck disable=SC2086
    cargo clippy --locked --lib $pure -- -D clippy::disallowed-methods
    echo "purity: the target $target cannot be had here (rustup target add $target failed)."
    echo "purity: stated equivalent: no pure crate calls a clock or sleeps (clippy::disallowed-methods)."
fi
