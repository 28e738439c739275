#!/bin/sh
# Makes what can be installed, into target/packages: a binary for glibc 2.28 or newer, a static one, a Debian
# package, a wheel and a source distribution, a list of all components, checksums. Says what it could
# not make and why. zig and cargo-zigbuild come from PyPI; cargo-deb and cargo-cyclonedx by cargo install.
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

# The dist profile's program for target $1, as target/packages/$2.
binary() {
    cargo zigbuild --profile dist --locked --bin sweetspot --target "$1"
    cp "target/${1%%.*}/dist/sweetspot" "$dist/$2"
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

if cargo deb --version >/dev/null 2>&1; then
    make --no-print-directory man-of PROGRAM="$dist/sweetspot-$version-linux-x86_64"
    cargo deb --no-build --no-strip --package sweetspot --target $glibc --profile dist --output "$dist"
else
    leave_out "Debian package" "there is no cargo-deb (cargo install cargo-deb --locked)"
fi

maturin build --quiet --release --locked --zig --compatibility manylinux_2_28 --out "$dist"
maturin sdist --out "$dist"

if cargo cyclonedx --version >/dev/null 2>&1; then
    cargo cyclonedx --quiet --manifest-path crates/cli/Cargo.toml --format json --override-filename sweetspot.cdx
    mv crates/cli/sweetspot.cdx.json "$dist/sweetspot-$version.cdx.json"
    find crates -name sweetspot.cdx.json -delete
else
    leave_out "list of components (SBOM)" "there is no cargo-cyclonedx (cargo install cargo-cyclonedx --locked)"
fi

for binary in "$dist"/sweetspot-"$version"-linux-x86_64*; do
    "$binary" --version
    bytes=$(stat -c %s "$binary")
    [ "$bytes" -lt 25000000 ] || { echo "$binary has $bytes bytes, more than 25 MB" >&2; exit 1; }
done
(cd "$dist" && sha256sum -- * >SHA256SUMS)
ls -l "$dist"
[ -z "$left_out" ] || echo "left out:$left_out"
