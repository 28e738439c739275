#!/bin/sh
# Names each missing tool that the build needs, with the command that installs it. Prints nothing if all are there.
# Rust's wasm32 target is optional (docs/install.md).
# Usage: scripts/check-tools.sh [test]      ("test" also asks for rustfmt, clippy and Python's venv)
set -u
cd "$(dirname "$0")/.."

missing=0

say() {
    printf 'missing: %s\n  %s\n' "$1" "$2" >&2
    missing=1
}

# The distribution's command that installs a package, which has a different name in each.
install_command() { # apt dnf pacman apk
    if command -v apt-get >/dev/null; then echo "sudo apt-get install $1"
    elif command -v dnf >/dev/null; then echo "sudo dnf install $2"
    elif command -v pacman >/dev/null; then echo "sudo pacman -S $3"
    elif command -v apk >/dev/null; then echo "sudo apk add $4"
    else echo "install $1 with this system's package manager"
    fi
}

# Whether version $1 (1.95.0) is $2 (1.88) or newer.
at_least() {
    [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]
}

rustup_install="curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y && . \"\$HOME/.cargo/env\""
wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)

if ! command -v cargo >/dev/null; then
    say "cargo (Rust $wanted or newer)" "$rustup_install"
else
    found=$(cargo --version | cut -d ' ' -f 2)
    if ! at_least "${found%%-*}" "$wanted"; then
        if command -v rustup >/dev/null; then update="rustup update stable"; else update=$rustup_install; fi
        say "Rust $wanted or newer (this is $found)" "$update"
    fi
    if [ "${1:-}" = test ]; then
        for part in fmt clippy; do
            component=$part
            [ "$part" = fmt ] && component=rustfmt
            cargo "$part" --version >/dev/null 2>&1 ||
                say "cargo $part" "rustup component add $component"
        done
    fi
fi
command -v cc >/dev/null ||
    say "cc, a C compiler" "$(install_command build-essential gcc base-devel build-base)"
command -v make >/dev/null || say make "$(install_command make make make make)"
if ! command -v python3 >/dev/null; then
    say python3 "$(install_command "python3 python3-venv" python3 python python3)"
elif [ "${1:-}" = test ]; then
    # Debian has this module in a separate package.
    python3 -c 'import ensurepip, venv' 2>/dev/null ||
        say "venv of python3" "$(install_command python3-venv python3 python python3)"
fi

exit $missing
