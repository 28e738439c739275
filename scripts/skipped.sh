#!/bin/sh
# Prints which tests were skipped and why; the file is what SWEETSPOT_SKIPPED named.
set -eu
file=$1
if [ -s "$file" ]; then
    echo "skipped, $(sort -u "$file" | wc -l) tests or parts of them:"
    sort -u "$file" | sed 's/^/  /'
    echo "make test-tools installs the programs that are named, on Debian; what wants root wants it."
else
    echo "skipped: nothing"
fi
