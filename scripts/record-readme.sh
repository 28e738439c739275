#!/bin/sh
# Records README's picture of `copy` and `top`, docs/pictures/terminal.svg: a real copy through a real sshd across an emulated path.
# Usage: scripts/record-readme.sh PROGRAM      (root, sshd, ssh; about half a minute)
set -eu
cd "$(dirname "$0")/.."
program=$(realpath "${1:?expected the path of the program sweetspot}")
out=$PWD/docs/pictures/terminal.svg
recorder=$PWD/scripts/record-terminal.py
work=$(mktemp -d "${TMPDIR:-/tmp}/sweetspot-record.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"

mkdir -p bin near far/archive
ln -s "$program" bin/sweetspot
for key in host user; do ssh-keygen -q -t ed25519 -N "" -f $key; done
cat >sshd.conf <<END
Port 2222
HostKey $work/host
AuthorizedKeysFile $work/user.pub
StrictModes no
PermitRootLogin yes
UsePAM no
PidFile none
SetEnv PATH=$work/bin:/usr/bin:/bin
ForceCommand cd $work/far && exec sh -c "\$SSH_ORIGINAL_COMMAND"
END
cat >ssh.conf <<END
Host nas
HostName 10.77.0.2
Port 2222
IdentityFile $work/user
StrictHostKeyChecking no
UserKnownHostsFile /dev/null
LogLevel ERROR
END
mkdir near/photos
for number in 1 2 3 4 5 6; do head -c 12000000 /dev/urandom >near/photos/$number.raw; done

# sshd needs a directory below /run, which disappears with this mount namespace.
export PATH="$work/bin:$PATH" SWEETSPOT_SSH="ssh -F $work/ssh.conf" SWEETSPOT_COPY_CONGESTION=cubic
unshare --mount sh -c '
    mount -t tmpfs tmpfs /run && mkdir /run/sshd
    sweetspot emulate --quiet --path "rate=100Mbit/s rtt=40ms buffer=1MB" --far "cd far && /usr/sbin/sshd -D -f ../sshd.conf" -- \
        sh -c "sleep 1; cd near && exec \"\$0\" \"\$@\"" "$@"' \
    sh "$recorder" "$out" 60 0.05 "7:0.3:sweetspot copy photos nas:archive/" "7:1.2:sweetspot top"
echo "wrote $out"
