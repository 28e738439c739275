#!/usr/bin/env bash
# Compiles the BPF programs of crates/kernel/bpf. The object is committed, so a build needs no clang.
# Usage: scripts/bpf.sh [check]
#   Without an argument, compiles tune.bpf.o again and records the sources from which it was made.
#   check fails if the committed object was made from other sources. If the compiler has the same version, it also compiles them
#   and compares every byte: another version of clang generates different code.
set -euo pipefail
cd "$(dirname "$0")/../crates/kernel"
CLANG=14.0.6
OBJECT=bpf/tune.bpf.o
MADE_FROM=bpf/tune.bpf.o.sha256

# The first of "$1-14" and "$1" that has this version: another version may generate different code.
tool() {
    for name in "$1-${CLANG%%.*}" "$1"; do
        if "$name" --version 2>/dev/null | grep -qF "version $CLANG"; then
            echo "$name"
            return
        fi
    done
    return 1
}

# Only BTF is needed to load the object, no other debug information. No path of this directory gets into the object.
compile() {
    "$clang" -target bpfel -mcpu=v3 -g -O2 -Wall -Wextra -Werror -fdebug-compilation-dir=. -c bpf/tune.bpf.c -o "$1"
    "$strip" -g "$1"
}

digests() { sha256sum bpf/kernel.h bpf/tune.bpf.c "$OBJECT"; }

clang=$(tool clang) && strip=$(tool llvm-strip) || clang=
install="apt-get install clang-${CLANG%%.*} llvm-${CLANG%%.*}"
if [ "${1:-}" != check ]; then
    [ -n "$clang" ] || { echo "bpf.sh: needs clang and llvm-strip of version $CLANG ($install)" >&2; exit 1; }
    compile "$OBJECT"
    digests >"$MADE_FROM"
    echo "$OBJECT: $(wc -c <"$OBJECT") bytes"
    exit
fi

digests | diff "$MADE_FROM" - || { echo "bpf.sh: $OBJECT was made from other sources; run make bpf" >&2; exit 1; }
if [ -z "$clang" ]; then
    # In the form of sweetspot_testing::skipped.
    echo "skipped: compiling the BPF programs and comparing the bytes; their sources have the recorded digests ($install)"
    exit
fi
again=$(mktemp)
trap 'rm -f "$again"' EXIT
compile "$again"
cmp "$OBJECT" "$again" || { echo "bpf.sh: $OBJECT is not what its sources compile to; run make bpf" >&2; exit 1; }
