#!/bin/sh
# Checks the verbs that need no Linux for macOS and Windows, without a C compiler or linker for them, and that a 32-bit
# build is rejected with a message. A target that is not installed is skipped, with a message (rustup target add TARGET).
set -eu
cd "$(dirname "$0")/.."

installed() {
    [ -d "$(rustc --print sysroot)/lib/rustlib/$1/lib" ] && return
    echo "other-systems: skipped $1: it is not installed (rustup target add $1)"
    return 1
}

for target in x86_64-apple-darwin aarch64-apple-darwin x86_64-pc-windows-gnu; do
    installed $target || continue
    # Warnings are errors, so that no unused code of the Linux verbs remains.
    cargo clippy --quiet --locked --target $target -p sweetspot -- -D warnings
    echo "other-systems: sweetspot checks for $target"
done

target=i686-unknown-linux-gnu
if installed $target; then
    if words=$(cargo check --locked --target $target -p sweetspot-linux -p sweetspot-system 2>&1); then
        echo "other-systems: a build for $target was not refused"
        exit 1
    fi
    echo "$words" | grep -q "64-bit machines only" || { echo "$words"; exit 1; }
    echo "other-systems: a build for $target is refused in words"
fi
