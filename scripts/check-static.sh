#!/bin/sh
# Checks that the static binary's code compiles against musl, whose C library lacks some names of glibc. Nothing is
# linked, so the system's C compiler suffices. Skipped, with the reason, if rustup has not installed the target;
# nothing is downloaded.
set -eu
cd "$(dirname "$0")/.."

target=x86_64-unknown-linux-musl
if ! [ -d "$(rustc --print sysroot)/lib/rustlib/$target/lib" ]; then
    echo "static-check: skipped, the target $target is not installed (rustup target add $target)"
    exit
fi
CC_x86_64_unknown_linux_musl=${CC_x86_64_unknown_linux_musl:-cc}
export CC_x86_64_unknown_linux_musl
cargo check --quiet --locked --target $target -p sweetspot
echo "static-check: sweetspot compiles for $target"
