#!/bin/sh
# Runs README's two commands, make demo and make test, like a new user: on a fresh Debian with only the packages that README
# requires.
# Usage: scripts/bare-test.sh [TARGET...]      (make's targets; without any: demo and test)
#
# debootstrap creates the root. Its user is not root and gets a copy of the files tracked by git here. This host provides its
# Rust toolchain (read-only), the crates that cargo has already fetched, and its certificates. The log is target/bare-test.log.
# Everything runs in a PID namespace, and all mounts are in a mount namespace, so that both end with this script.
# Needs root, debootstrap, a network, and 15 GB in TMPDIR (/var/tmp).
set -eu
cd "$(dirname "$0")/.."
targets=${*:-demo test}
suite=bookworm
# As README says: "a Rust toolchain, a C compiler, make and python3 (with its venv module)".
packages="gcc make python3 python3-venv"

[ "$(id -u)" = 0 ] || { echo "bare-test: run as root: only root makes a new root (debootstrap)" >&2; exit 1; }
for tool in debootstrap unshare git rustc; do
    command -v $tool >/dev/null || { echo "bare-test: there is no $tool (apt-get install $tool)" >&2; exit 1; }
done
rust=$(rustc --print sysroot)
registry=${CARGO_HOME:-$HOME/.cargo}/registry
mkdir -p target
log=$PWD/target/bare-test.log
: >"$log"
root=$(mktemp -d "${TMPDIR:-/var/tmp}/sweetspot-bare.XXXXXX")
chmod 755 "$root"
inner=
# The namespaces end with their first process, and none of the root's mounts is visible to this script.
trap '[ -z "$inner" ] || { kill -KILL "$inner" 2>/dev/null; wait "$inner" 2>/dev/null; } || true; rm -rf --one-file-system "$root"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

say() {
    echo "== $(date +%H:%M:%S) $*" | tee -a "$log"
}

# Runs a step with its output in the log only; prints the end of that output if the step fails.
step() {
    say "$1"
    shift
    "$@" >>"$log" 2>&1 || { tail -n 30 "$log" >&2; echo "bare-test: it failed; see $log" >&2; exit 1; }
}

step "debootstrap $suite" debootstrap --variant=minbase "$suite" "$root"
cp /etc/resolv.conf /etc/hosts "$root/etc/"
step "apt-get install $packages" chroot "$root" env DEBIAN_FRONTEND=noninteractive apt-get install --yes $packages
step "a new user" chroot "$root" useradd --create-home --shell /bin/bash newcomer
home=$root/home/newcomer
mkdir -p "$home/sweetspot" "$home/.cargo" "$root/opt/rust" "$root/etc/ssl/certs"
git ls-files -z --cached --others --exclude-standard | tar --create --null --files-from=- --ignore-failed-read |
    tar --extract --directory="$home/sweetspot"
if [ -d "$registry/cache" ]; then
    mkdir "$home/.cargo/registry"
    cp -R "$registry/cache" "$registry/index" "$home/.cargo/registry/"
fi
chroot "$root" chown -R newcomer: /home/newcomer

# In the namespaces: mounts the usual file systems, changes to the new root, and becomes the new user.
cat >"$root/enter" <<'SH'
set -eu
root=$1 rust=$2
shift 2
mount --bind "$root" "$root"
for tree in dev sys; do mount --rbind /$tree "$root/$tree"; done
mount -t proc proc "$root/proc"
mount --bind "$rust" "$root/opt/rust"
mount -o remount,bind,ro "$root/opt/rust"
if [ -d /etc/ssl/certs ]; then
    mount --bind /etc/ssl/certs "$root/etc/ssl/certs"
    mount -o remount,bind,ro "$root/etc/ssl/certs"
fi
mkdir -p "$root/old"
cd "$root"
pivot_root . old
umount --lazy /old
rmdir /old
bundle=/etc/ssl/certs/ca-certificates.crt
[ ! -e $bundle ] || certificates="SSL_CERT_FILE=$bundle PIP_CERT=$bundle CARGO_HTTP_CAINFO=$bundle"
cd /home/newcomer/sweetspot
exec setpriv --reuid=newcomer --regid=newcomer --init-groups --inh-caps=-all \
    env -i HOME=/home/newcomer USER=newcomer LANG=C.UTF-8 PATH=/opt/rust/bin:/usr/local/bin:/usr/bin:/bin \
    ${certificates:-} make --no-print-directory "$@" </dev/null
SH

status=0
for target in $targets; do
    say "make $target"
    # Not in a pipe: its process ID is needed to end everything.
    unshare --mount --pid --fork --kill-child --propagation private sh "$root/enter" "$root" "$rust" "$target" >>"$log" 2>&1 &
    inner=$!
    tail --pid="$inner" --lines=0 --follow "$log" &
    shown=$!
    wait "$inner" || status=$?
    inner=
    wait "$shown" || true
    if [ "$status" != 0 ]; then
        say "make $target failed with exit code $status; see $log"
        exit 1
    fi
done
say "passed on a bare $suite: make $targets"
