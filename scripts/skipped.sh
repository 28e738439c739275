#!/bin/sh
# Prints the skipped tests with their reasons, from the file named by SWEETSPOT_SKIPPED.
set -eu
file=$1
if [ -s "$file" ]; then
    echo "skipped, $(sort -u "$file" | wc -l) tests or parts of them:"
    sort -u "$file" | sed 's/^/  /'
    echo "make test-tools installs the programs that are named, on Debian; what wants root wants it."
else
    echo "skipped: nothing"
fi
