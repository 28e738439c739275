#!/bin/sh
# Runs every verb once on the running kernel, as root: in a guest (boot.sh), or on any machine. Prints for each verb a line
#   row <TAB> VERB <TAB> works | names | FAILS <TAB> words <TAB> seconds
# "names" means that this kernel cannot run the verb, or runs it without a part, and that its message matches the pattern given
# for it here.
# Usage: guest.sh [VERB...]    (parts of verb names; without any, all verbs)
# Variables: SWEETSPOT, the program; SLOW, a factor for the time limits.
S=${SWEETSPOT:-$(cd "$(dirname "$0")/../.." && pwd)/target/dist/sweetspot}
export S
scratch=$(mktemp -d); chmod 777 "$scratch"; cd "$scratch" || exit
trap 'cd /; rm -rf "$scratch"' EXIT
only=$*
wanted() {
    [ -n "$only" ] || return 0
    for word in $only; do case $1 in *"$word"*) return 0;; esac; done
    return 1
}
# verb NAME SECONDS LACKS COMMAND...: LACKS is a pattern for the message that names a missing part; "-" if nothing may be
# missing.
verb() {
    name=$1 limit=$(($2 * ${SLOW:-1})) lacks=$3; shift 3
    wanted "$name" || return 0
    begun=$(cut -d . -f 1 /proc/uptime)
    timeout -k 5 "$limit" "$@" >out 2>&1; code=$?
    took=$(($(cut -d . -f 1 /proc/uptime) - begun))
    named=$([ "$lacks" = - ] || tr -d '\r' <out | grep -E -m 1 "$lacks")
    if [ -n "$named" ]; then word=names; words=$named
    elif [ $code = 0 ]; then word=works words=
    elif [ $code = 124 ]; then word=FAILS; words="not done after $limit s: $(tail -n 1 out)"
    else word=FAILS; words="exit code $code: $(tail -n 1 out)"; fi
    printf 'row\t%s\t%s\t%s\t%s\n' "$name" "$word" "$(printf %s "$words" | tr '\t' ' ' | cut -c 1-300)" "$took"
    [ $word != FAILS ] || tail -n 15 out | sed 's/^/   /'
    rm -rf in ticket served got
}
user="setpriv --reuid=1000 --regid=1000 --clear-groups --inh-caps=-all"
path="rate=20Mbit/s rtt=40ms buffer=100kB"
head -c 2000000 /dev/urandom >file; chmod 644 file
cat >tiny.toml <<'TOML'
title = "One transfer"
seed = 1
duration = "5s"

[path]
rate = "10Mbit/s"
rtt = "40ms"
buffer = "100kB"

[[transfer]]
sizing = "sobas"
TOML
http="python3 -m http.server --bind 10.77.0.2 8000"
get='until curl -sf -o got http://10.77.0.2:8000/file; do sleep .5; done; cmp got file'
emulate() { verb "$1" "$2" "$3" $4 "$S" emulate --quiet --path "$path" --far "$5" -- sh -c "$6"; }
transfer='"$S" serve --dir in --listen 127.0.0.1:0 --once $1 >ticket 2>served & until [ -s ticket ]; do sleep .2; done
    "$S" send file --ticket-file ticket $2; code=$?; wait; cat served; cmp file in/file && exit $code'
netns='ip link set lo up; '
# A connection with a slow reader.
flow='python3 -c "
import socket, threading, time
l = socket.create_server((\"127.0.0.1\", 9999))
def take():
    c = l.accept()[0]
    while c.recv(100000): time.sleep(.02)
threading.Thread(target=take, daemon=True).start()
s = socket.create_connection((\"127.0.0.1\", 9999))
end = time.time() + 90
while time.time() < end: s.send(b\"x\" * 50000)
" & flow=$!; sleep 4; '
on_flow() { verb "$1" "$2" "$3" sh -c "$flow $4; code=\$?; kill \$flow; exit \$code"; }
old='since Linux|before Linux|use --via pidfd|no bbr|bbr is not'

echo "kernel $(uname -r)"
verb "tune doctor" 60 "missing|before Linux" "$S" tune doctor
verb "advise host" 60 - "$S" advise host
verb "advise window" 120 - "$S" advise window --rate 50Mbit/s --rtt 100ms --buffer 625kB
verb "run (simulator)" 120 - "$S" run tiny.toml
sed s/sobas/fixed:50kB/ tiny.toml >fixed.toml
verb "run --engine theory" 60 - "$S" run fixed.toml --engine theory
verb "advise router" 120 - "$S" advise router --rate 100Mbit/s --rtt 60ms --input-rate 1Gbit/s
verb "sweep" 180 - "$S" sweep fixed.toml --over transfer.sizing=fixed:20kB,fixed:50kB --out sweep.json
verb "report" 60 - sh -c '"$S" run fixed.toml --out run.json && "$S" report run.json && test -s report.html'
verb "ui" 60 - sh -c '"$S" ui --json >served & until [ -s served ]; do sleep .2; done
    address=$(grep -o "http[^\"]*" served); curl -sf -o got "$address"; code=$?; kill $!; wait; test -s got && exit $code'
verb "generate" 60 - sh -c '"$S" generate man man && test -s man/man1/sweetspot.1 && "$S" generate completions bash >got && test -s got'
verb "run --engine lab" 180 - "$S" run tiny.toml --engine lab
verb "emulate" 60 - "$S" emulate --path "$path" -- sh -c 'ping -c 3 $SWEETSPOT_FAR'
verb "emulate, not root" 60 - $user "$S" emulate --path "$path" -- sh -c 'ping -c 3 $SWEETSPOT_FAR'
verb "serve, send" 120 - sh -c "$transfer"
verb "serve, send, not root" 120 - $user sh -c "$transfer"
verb "serve, send, no_new_privs" 120 - setpriv --no-new-privs sh -c "$transfer"
verb "send, then receive" 120 - sh -c '"$S" send file --listen 127.0.0.1:0 >ticket & until [ -s ticket ]; do sleep .2; done
    "$S" receive "$(cat ticket)" got; code=$?; wait; cmp file got && exit $code'
verb "serve key, invite" 60 - sh -c '"$S" serve key --identity key.pem &&
    "$S" serve invite --clients clients --dir in --to 127.0.0.1 --state state ann >got && test -s got'
# Replaces ssh: runs the command for the far end here.
printf '#!/bin/sh\nwhile [ $# -gt 1 ]; do shift; done\nexec sh -c "$1"\n' >ssh; chmod 755 ssh
verb "copy" 120 - sh -c '"$S" copy --ssh ./ssh --remote-program "$S" file far:$PWD/got && cmp file got'
verb "serve --congestion bbr" 120 - sh -c "$transfer" - "--congestion bbr"
verb "serve, send, other namespace" 120 - unshare -n sh -c "$netns$transfer"
verb "serve, send, user namespace" 120 - $user unshare -Urn sh -c "$netns$transfer"
verb "send --sizing fixed:1MB" 120 - unshare -n sh -c "$netns$transfer" - "--sizing fixed:1MB"
verb "serve, send, emulated" 180 - "$S" emulate --quiet --path "$path" --far "$S serve --dir in --listen 10.77.0.2:7411 --once >ticket" -- \
    sh -c 'until [ -s ticket ]; do sleep .2; done; "$S" send file --ticket-file ticket && cmp file in/file'
emulate "tune run --via pidfd" 120 - "" "$http" "\"\$S\" tune run --via pidfd -- sh -c '$get'"
emulate "tune run --send" 120 - "" "\"\$S\" tune run --via pidfd --send -- $http" "$get"
emulate "tune run --via bpf" 120 "$old" "" "$http" "\"\$S\" tune run --via bpf -- sh -c '$get'"
emulate "tune run" 120 - "" "$http" "\"\$S\" tune run -- sh -c '$get'"
emulate "tune run, not root" 120 - "$user" "$http" "\"\$S\" tune run -- sh -c '$get'"
ends='[ $code = 124 ] && code=0; (exit $code)'
on_flow "tune attach" 90 - "timeout -s INT 8 \"\$S\" tune attach \$flow; code=\$?; $ends"
on_flow "tune attach --via bpf" 90 "$old" "timeout -s INT 8 \"\$S\" tune attach --via bpf \$flow; code=\$?; $ends"
printf '[[rule]]\ngoal = "throughput"\n' >policy.toml
on_flow "tune daemon" 90 "before Linux|since Linux" "timeout -s INT 8 \"\$S\" tune daemon --policy policy.toml; code=\$?; $ends"
verb "tune undo" 30 - "$S" tune undo
on_flow "top --once" 60 - '"$S" top --once'
on_flow "diagnose HOST:PORT" 60 - '"$S" diagnose 127.0.0.1:9999 --for 5s'
on_flow "diagnose PID" 60 - '"$S" diagnose $flow --for 5s'
on_flow "diagnose FILE" 60 - 'for i in 1 2 3 4 5; do date +%s.%N; ss -tin; sleep .2; done >ss.log; "$S" diagnose ss.log'
on_flow "diagnose --follow" 60 - '"$S" diagnose --follow lo --for 5s'
emulate "measure HOST:PORT" 120 - "" "$http" "$get; \"\$S\" measure \$SWEETSPOT_FAR:8000"
emulate "measure --gentle" 240 - "" "$S serve --dir in --listen 10.77.0.2:7411 >ticket" \
    'until [ -s ticket ]; do sleep .2; done; "$S" measure --gentle --ticket-file ticket'
verb "demo" 300 "$old" "$S" demo --size 1MB --path "rate=20Mbit/s rtt=20ms buffer=50kB" --sizing kernel+cubic,kernel+bbr,sobas --out demo-out
