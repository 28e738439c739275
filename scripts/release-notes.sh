#!/bin/sh
# Prints the section of CHANGELOG.md for a version: scripts/release-notes.sh 0.1.0 (or Unreleased).
set -eu
cd "$(dirname "$0")/.."
notes=$(awk -v wanted="$1" '/^## /{ inside = ($2 == wanted || $2 == "[" wanted "]"); next } inside' CHANGELOG.md)
[ -n "$notes" ] || { echo "CHANGELOG.md has no section \"## $1\"" >&2; exit 1; }
printf '%s\n' "$notes"
