#!/bin/sh
# Makes what can be installed, into target/dist: a binary for glibc 2.28 or newer, a static one, a Debian
# package, a wheel and a source distribution, a list of all components, checksums. Says what it could
# not make and why. Needs cargo-zigbuild and cargo-deb (cargo install); the linker comes from PyPI.
set -eu
cd "$(dirname "$0")/.."
dist=$PWD/target/dist
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
glibc=x86_64-unknown-linux-gnu
musl=x86_64-unknown-linux-musl
left_out=

leave_out() {
    left_out="$left_out
  $1: $2"
}

rm -rf "$dist"
mkdir -p "$dist"
python=$PWD/target/python/bin/python
test -x "$python" || python3 -m venv target/python
"$python" -m pip install --quiet --disable-pip-version-check -r python/requirements.lock ziglang
PATH="$PWD/target/python/bin:$PATH"
export PATH

for tool in zigbuild deb; do
    cargo $tool --help >/dev/null 2>&1 || {
        echo "make dist needs cargo-$tool: cargo install cargo-$tool --locked" >&2
        exit 1
    }
done

cargo zigbuild --profile dist --locked --bin sweetspot --target $glibc.2.28
cp target/$glibc/dist/sweetspot "$dist/sweetspot-$version-linux-x86_64"

if rustup target add $musl >/dev/null 2>&1 && cargo zigbuild --profile dist --locked --bin sweetspot --target $musl; then
    cp target/$musl/dist/sweetspot "$dist/sweetspot-$version-linux-x86_64-static"
else
    leave_out "static binary" "the target $musl cannot be built here"
fi

make --no-print-directory man SWEETSPOT="$dist/sweetspot-$version-linux-x86_64"
cargo deb --no-build --no-strip --package sweetspot --target $glibc --profile dist --output "$dist"

maturin build --quiet --release --locked --zig --compatibility manylinux_2_28 --out "$dist"
maturin sdist --quiet --out "$dist"

if cargo cyclonedx --help >/dev/null 2>&1; then
    cargo cyclonedx --manifest-path crates/cli/Cargo.toml --format json --override-filename sweetspot.cdx
    mv crates/cli/sweetspot.cdx.json "$dist/sweetspot-$version.cdx.json"
    find crates -name sweetspot.cdx.json -delete
else
    leave_out "list of components (SBOM)" "there is no cargo-cyclonedx: cargo install cargo-cyclonedx --locked"
fi

for binary in "$dist"/sweetspot-"$version"-linux-x86_64*; do
    "$binary" --version
    bytes=$(stat -c %s "$binary")
    [ "$bytes" -lt 25000000 ] || { echo "$binary has $bytes bytes, more than 25 MB" >&2; exit 1; }
done
(cd "$dist" && sha256sum -- * >SHA256SUMS)
ls -l "$dist"
[ -z "$left_out" ] || echo "left out:$left_out"
