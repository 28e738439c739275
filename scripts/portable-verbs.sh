#!/bin/sh
# Runs each verb that needs no Linux once, using PROGRAM, on macOS, Windows or Linux.
#   portable-verbs.sh PROGRAM
set -eu
S=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
scratch=$(mktemp -d)
trap 'cd /; rm -rf "$scratch"' EXIT
cd "$scratch"
cat >tiny.toml <<'TOML'
title = "One transfer"
seed = 1
duration = "5s"

[path]
rate = "10Mbit/s"
rtt = "40ms"
buffer = "100kB"

[[transfer]]
sizing = "fixed:50kB"
TOML
# Output of `ss -tin` on a Linux host.
cat >ss.log <<'TEXT'
State Recv-Q Send-Q Local Address:Port Peer Address:Port Process
ESTAB 0 2896 192.0.2.1:443 198.51.100.7:50412
	 cubic wscale:7,7 rto:244 rtt:43.1/1.2 ato:40 mss:1448 pmtu:1500 rcvmss:536 advmss:1448 cwnd:40 ssthresh:32 bytes_sent:9000000 bytes_acked:8900000 segs_out:6300 segs_in:3100 data_segs_out:6298 send 10.7Mbps lastsnd:4 lastrcv:9000 lastack:8 pacing_rate 12.9Mbps delivery_rate 9.8Mbps delivered:6250 busy:8000ms unacked:40 retrans:0/25 rcv_space:14480 rcv_ssthresh:64088 notsent:1448 minrtt:40.2 snd_wnd:262144
TEXT
"$S" --version
"$S" run tiny.toml --out run.json
"$S" run tiny.toml --engine theory
"$S" sweep tiny.toml --over transfer.sizing=fixed:20kB,fixed:50kB --out sweep.json
"$S" report run.json && test -s report.html
"$S" advise window --rate 50Mbit/s --rtt 100ms --buffer 625kB --kernel 6.18
"$S" advise router --rate 100Mbit/s --rtt 60ms --input-rate 1Gbit/s --verify none
"$S" diagnose ss.log
"$S" diagnose - <ss.log
"$S" generate completions bash >completions && test -s completions
"$S" ui --json >address &
ui=$!
for _ in 1 2 3 4 5 6 7 8 9 10; do [ -s address ] && break; sleep 1; done
curl -sf -o page "$(grep -o 'http[^"]*' address)"
kill $ui
test -s page
case $(uname) in Linux) echo "every portable verb works"; exit;; esac
for verb in copy send receive serve top measure tune demo emulate "advise host" "diagnose 1" "run tiny.toml --engine lab"; do
    # shellcheck disable=SC2086 # words of a command line
    if words=$("$S" $verb 2>&1); then echo "$verb: it ran"; exit 1; fi
    echo "$words" | grep -q "Linux" || { echo "$verb: $words"; exit 1; }
done
echo "every verb works, or names Linux"
