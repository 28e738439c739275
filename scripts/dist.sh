#!/bin/sh
# Makes the installable files in target/packages: a binary for glibc 2.28 or newer, a static one, a Debian
# package, a wheel and a source distribution, a list of all components, checksums. Prints each file that could
# not be made, with the reason. zig, cargo-zigbuild and maturin come from PyPI, into target/dist-tools.
set -eu
cd "$(dirname "$0")/.."
dist=$PWD/target/packages
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
glibc=x86_64-unknown-linux-gnu
musl=x86_64-unknown-linux-musl
left_out=

leave_out() {
    left_out="$left_out
  $1: $2"
}

# Builds the program with the dist profile for target $1, as target/packages/$2.
binary() {
    cargo zigbuild --profile dist --locked --bin sweetspot --features jemalloc --target "$1"
    # Cargo's strip leaves the names of local functions.
    strip -o "$dist/$2" "target/${1%%.*}/dist/sweetspot"
}

rm -rf "$dist"
mkdir -p "$dist"
tools=$PWD/target/dist-tools
test -x "$tools/bin/python" || python3 -m venv "$tools"
"$tools/bin/pip" install --quiet --disable-pip-version-check -r packaging/requirements.lock
PATH="$tools/bin:$PATH"
export PATH

binary $glibc.2.28 "sweetspot-$version-linux-x86_64"
if rustup target add $musl >/dev/null 2>&1; then
    binary $musl "sweetspot-$version-linux-x86_64-static"
else
    leave_out "static binary" "the target $musl cannot be had here (rustup target add $musl failed)"
fi

program=$dist/sweetspot-$version-linux-x86_64
make --no-print-directory man-of PROGRAM="$program"
scripts/deb.py "$program" "$version" "$dist"
scripts/sbom.py $glibc >"$dist/sweetspot-$version.cdx.json"

maturin build --quiet --release --locked --zig --compatibility manylinux_2_28 --out "$dist"
maturin sdist --out "$dist"

for binary in "$dist"/sweetspot-"$version"-linux-x86_64*; do
    "$binary" --version
    bytes=$(stat -c %s "$binary")
    [ "$bytes" -lt 18000000 ] || { echo "$binary has $bytes bytes, more than 18 MB" >&2; exit 1; }
done
(cd "$dist" && sha256sum -- * >SHA256SUMS)
ls -l "$dist"
[ -z "$left_out" ] || echo "left out:$left_out"
