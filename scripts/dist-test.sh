#!/bin/sh
# Installs the results of `make dist` into fresh roots and transfers a file with each, as in README's first
# example. Prints what it could not run and why. Needs root for the roots (chroot), and a network for debootstrap
# and pip.
set -eu
cd "$(dirname "$0")/.."
dist=$PWD/target/packages
[ -e "$dist/SHA256SUMS" ] || { echo "there is nothing to test: make dist" >&2; exit 1; }
work=$(mktemp -d "${TMPDIR:-/tmp}/sweetspot-dist.XXXXXX")
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
left_out=

leave_out() {
    left_out="$left_out
  $1: $2"
}

# Transfers a file over loopback: $1 is the program's command, $2 a directory, $3 the directory's name as seen by
# the program.
move_a_file() {
    mkdir -p "$2"
    head -c 5000000 /dev/urandom >"$2/data"
    $1 serve --once --dir "$3/in" --listen 127.0.0.1:0 >"$2/ticket" 2>"$2/serve.log" &
    server=$!
    until [ -s "$2/ticket" ]; do
        kill -0 $server 2>/dev/null || { cat "$2/serve.log" >&2; exit 1; }
        sleep 0.1
    done
    $1 send "$3/data" "$(head -n 1 "$2/ticket")"
    wait $server
    server=
    cmp "$2/data" "$2/in/data"
    rm -rf "$2"
}

# in-root ROOT COMMAND: runs the command in that root, with /proc, where the program reads the kernel's limits.
# The mount ends with the command.
cat >"$work/in-root" <<'SH'
#!/bin/sh
mkdir -p "$1/proc"
exec unshare --mount sh -c 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$@"
SH
chmod +x "$work/in-root"

# The newest version of glibc that binary $1 requires.
glibc_of() {
    grep -ao 'GLIBC_2\.[0-9]*' "$1" | sed 's/^GLIBC_//' | sort -uV | tail -n 1
}

# Runs a scenario with the Python package in file $1, in a separate environment.
run_from_python() {
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install --quiet --disable-pip-version-check "$1"
    "$work/venv/bin/python" - <<'PYTHON'
import sweetspot as ss

outcome = ss.run(ss.Scenario.from_file("scenarios/elephants.toml"))
print("a run from Python:", outcome.transfers[0].goodput_bps / 1e6, "Mbit/s")
PYTHON
    rm -rf "$work/venv"
}

echo "== checksums"
(cd "$dist" && sha256sum --check --quiet SHA256SUMS)

for binary in "$dist"/sweetspot-*-linux-x86_64*; do
    echo "== $binary"
    move_a_file "$binary" "$work/direct" "$work/direct"
done
newest=$(glibc_of "$(ls "$dist"/sweetspot-*-linux-x86_64)")
echo "the binary that is not static asks for glibc $newest"
[ "$(printf '%s\n2.28\n' "$newest" | sort -V | tail -n 1)" = 2.28 ] || { echo "newer than 2.28" >&2; exit 1; }

echo "== static binary in an empty root"
static=$(ls "$dist"/sweetspot-*-static 2>/dev/null || true)
if [ -z "$static" ]; then leave_out "static binary" "make dist made none"
elif [ "$(id -u)" != 0 ]; then leave_out "static binary in an empty root" "chroot needs root"
else
    mkdir "$work/empty"
    cp "$static" "$work/empty/sweetspot"
    move_a_file "$work/in-root $work/empty /sweetspot" "$work/empty/t" /t
fi

echo "== Debian package"
package=$(ls "$dist"/*.deb 2>/dev/null || true)
if [ -z "$package" ]; then leave_out "Debian package" "make dist made none"
elif [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then
    leave_out "Debian package" "needs root and debootstrap (apt-get install debootstrap)"
else
    debian=$work/debian
    if ! debootstrap --variant=minbase bookworm "$debian" >"$work/log" 2>&1 ||
        { cp "$package" "$debian/tmp/" && ! chroot "$debian" sh -c 'apt-get install --yes /tmp/*.deb' >"$work/log" 2>&1; }
    then
        tail -n 20 "$work/log" >&2
        exit 1
    fi
    move_a_file "$work/in-root $debian sweetspot" "$debian/tmp/t" /tmp/t
    for file in usr/lib/systemd/system/sweetspot-tune.service etc/sweetspot/policy.toml \
        usr/share/man/man1/sweetspot.1.gz usr/share/man/man1/sweetspot-send.1.gz \
        usr/share/bash-completion/completions/sweetspot; do
        # minbase omits documentation, so the package's own file list is checked.
        chroot "$debian" dpkg --listfiles sweetspot | grep -qx "/$file" || { echo "the package lacks $file" >&2; exit 1; }
    done
    chroot "$debian" sweetspot tune daemon --policy /etc/sweetspot/policy.toml --help >/dev/null
    chroot "$debian" dpkg --remove sweetspot >/dev/null
    ! chroot "$debian" sh -c 'command -v sweetspot' || { echo "the package cannot be removed" >&2; exit 1; }
fi

echo "== wheel"
run_from_python "$(ls "$dist"/*.whl)"
echo "== source distribution"
run_from_python "$(ls "$dist"/*.tar.gz)"

echo "== container"
context=$work/context
if [ -z "$static" ]; then leave_out "container" "make dist made no static binary"
elif podman info >/dev/null 2>&1 || docker info >/dev/null 2>&1; then
    engine=podman
    podman info >/dev/null 2>&1 || engine=docker
    mkdir "$context"
    cp "$static" "$context/sweetspot"
    $engine build --quiet --file packaging/Containerfile --tag sweetspot-test "$context"
    move_a_file "$engine run --rm --network host --volume $context:/t sweetspot-test" "$context/t" /t/t
    $engine rmi sweetspot-test >/dev/null
elif [ "$(id -u)" = 0 ] && command -v buildah >/dev/null; then
    # Without kernel support for containers, buildah builds and runs it in a chroot.
    export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
    mkdir "$context"
    cp "$static" "$context/sweetspot"
    buildah build --quiet --file packaging/Containerfile --tag sweetspot-test "$context"
    container=$(buildah from sweetspot-test)
    move_a_file "buildah run --volume $context:/t $container -- /sweetspot" "$context/t" /t/t
    buildah rm "$container" >/dev/null
    buildah rmi sweetspot-test >/dev/null
else
    leave_out "container" "no container engine runs here (apt-get install podman, or as root buildah)"
fi

[ -z "$left_out" ] || echo "not run:$left_out"
