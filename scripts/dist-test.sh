#!/bin/sh
# Installs what `make dist` made into fresh roots and moves a file with it, as README's first example does.
# Says what it could not run and why. Root for the roots (chroot), a network for debootstrap.
set -eu
cd "$(dirname "$0")/.."
dist=$PWD/target/dist
work=$(mktemp -d "${TMPDIR:-/tmp}/sweetspot-dist.XXXXXX")
trap 'rm -rf "$work"' EXIT
left_out=

leave_out() {
    left_out="$left_out
  $1: $2"
}

# Moves a file on loopback: $1 is the program's command, $2 a directory, $3 its name as the program sees it.
move_a_file() {
    run=$1 place=$2
    mkdir -p "$place/in"
    head -c 5000000 /dev/urandom >"$place/data"
    $run serve --once --dir "$3/in" --listen 127.0.0.1:0 >"$place/ticket" 2>"$place/serve.log" &
    server=$!
    for _ in 1 2 3 4 5 6 7 8 9 10; do [ -s "$place/ticket" ] && break; sleep 0.3; done
    $run send "$3/data" "$(head -n 1 "$place/ticket")"
    wait $server
    cmp "$place/data" "$place/in/data"
    rm -rf "$place/in" "$place/data" "$place/ticket" "$place/serve.log"
}

for binary in "$dist"/sweetspot-*-linux-x86_64*; do
    echo "== $binary"
    move_a_file "$binary" "$work/direct" "$work/direct"
done

echo "== static binary in an empty root"
static=$(ls "$dist"/sweetspot-*-static 2>/dev/null || true)
if [ -z "$static" ]; then leave_out "static binary" "make dist made none"
elif [ "$(id -u)" != 0 ]; then leave_out "static binary in an empty root" "chroot needs root"
else
    mkdir -p "$work/empty/tmp"
    cp "$static" "$work/empty/sweetspot"
    chroot "$work/empty" /sweetspot --version
fi

echo "== Debian package"
if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then
    leave_out "Debian package" "needs root and debootstrap (apt-get install debootstrap)"
else
    debootstrap --variant=minbase bookworm "$work/debian" >"$work/debootstrap.log" 2>&1
    cp "$dist"/*.deb "$work/debian/tmp/"
    chroot "$work/debian" sh -c 'apt-get install --yes /tmp/*.deb' >"$work/install.log" 2>&1
    chroot "$work/debian" sweetspot --version
    move_a_file "chroot $work/debian sweetspot" "$work/debian/tmp/t" /tmp/t
    for file in usr/lib/systemd/system/sweetspot-tune.service etc/sweetspot/policy.toml \
        usr/share/man/man1/sweetspot.1.gz usr/share/bash-completion/completions/sweetspot; do
        test -e "$work/debian/$file" || { echo "the package lacks $file" >&2; exit 1; }
    done
    chroot "$work/debian" sweetspot tune daemon --policy /etc/sweetspot/policy.toml --help >/dev/null
fi

echo "== wheel"
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check "$dist"/*.whl
"$work/venv/bin/python" - <<'PYTHON'
import sweetspot as ss

outcome = ss.run(ss.Scenario.from_file("scenarios/elephants.toml"))
print("a run from Python:", outcome.transfers[0].goodput_bps / 1e6, "Mbit/s")
PYTHON

echo "== container"
engine=$(command -v podman || command -v docker || true)
if [ -z "$engine" ]; then leave_out "container" "there is neither podman nor docker"
else
    cp "$dist"/sweetspot-*-static "$work/sweetspot"
    "$engine" build --quiet --file packaging/Containerfile --tag sweetspot-test "$work"
    "$engine" run --rm sweetspot-test --version
fi

[ -z "$left_out" ] || echo "not run:$left_out"
