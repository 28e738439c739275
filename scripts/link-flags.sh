#!/bin/sh
# Prints the flags for rustc that make the installed program smaller, if this machine's linker and loader support them:
# relative relocations in a compact form (0.4 MB; glibc 2.36), and one copy of functions with the same code (0.2 MB; lld).
set -eu
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
echo 'fn main() { println!("ran"); }' >"$directory/probe.rs"

for flag in -Wl,-z,pack-relative-relocs -Wl,--icf=all; do
    if rustc -C "link-arg=$flag" -o "$directory/probe" "$directory/probe.rs" 2>/dev/null && "$directory/probe" >/dev/null 2>&1; then
        printf '%s ' -C "link-arg=$flag"
    fi
done
