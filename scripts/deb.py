#!/usr/bin/env python3
"""Makes the Debian package of an existing program, in Python alone: neither cargo-deb nor dpkg is needed.

Usage: scripts/deb.py PROGRAM VERSION DIRECTORY      (after make man-of; prints the package's path)

The same files give the same bytes: every time in the package is SOURCE_DATE_EPOCH, or the last commit's.
"""

import glob
import gzip
import hashlib
import io
import lzma
import os
import stat
import subprocess
import sys
import tarfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Files below ROOT and their destinations: a folder (with a slash), or a name.
FILES = [
    ("target/man/man1/*.1", "usr/share/man/man1/"),
    ("target/man/man5/*.5", "usr/share/man/man5/"),
    ("target/man/man7/*.7", "usr/share/man/man7/"),
    ("target/completions/sweetspot.bash", "usr/share/bash-completion/completions/sweetspot"),
    ("target/completions/sweetspot.zsh", "usr/share/zsh/vendor-completions/_sweetspot"),
    ("target/completions/sweetspot.fish", "usr/share/fish/vendor_completions.d/sweetspot.fish"),
    ("packaging/sweetspot-serve.service", "usr/lib/systemd/system/"),
    ("packaging/sweetspot-serve.socket", "usr/lib/systemd/system/"),
    ("packaging/sweetspot-tune.service", "usr/lib/systemd/system/"),
    ("packaging/policy.toml", "etc/sweetspot/policy.toml"),
    ("packaging/grafana-dashboard.json", "usr/share/doc/sweetspot/examples/"),
    ("packaging/alerts.yml", "usr/share/doc/sweetspot/examples/"),
    ("README.md", "usr/share/doc/sweetspot/"),
    ("SECURITY.md", "usr/share/doc/sweetspot/"),
]
CONTROL = """\
Package: sweetspot
Version: {version}-1
Architecture: amd64
Maintainer: The Sweetspot authors
Installed-Size: {kibibytes}
Depends: libc6 (>= 2.28)
Section: net
Priority: optional
Description: moves files, tunes and explains TCP at its best window
 Sweetspot finds the window at which a TCP transfer is fastest and its path
 calmest. It transfers files, tunes the downloads of other programs, names the
 limit of a connection, and simulates paths packet by packet.
"""
COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: sweetspot

Files: *
Copyright: The Sweetspot authors
License: MIT or Apache-2.0

License: Apache-2.0
 On Debian systems, see /usr/share/common-licenses/Apache-2.0.

License: MIT
"""


def read(path):
    with open(path, "rb") as file:
        return file.read()


def contents(program):
    """The package's files: mode and content by path."""
    found = {"usr/bin/sweetspot": (0o755, read(program))}
    for pattern, place in FILES:
        paths = sorted(glob.glob(os.path.join(ROOT, pattern)))
        if not paths:
            sys.exit(f"deb.py: {pattern} matches no file: make man-of PROGRAM={program}")
        for path in paths:
            name = place + os.path.basename(path) if place.endswith("/") else place
            content = read(path)
            if "/man/" in name:
                name, content = name + ".gz", gzip.compress(content, mtime=0)
            found[name] = (0o644, content)
    mit = read(os.path.join(ROOT, "LICENSE-MIT")).decode()
    quoted = "".join(f" {line or '.'}\n" for line in mit.splitlines())
    found["usr/share/doc/sweetspot/copyright"] = (0o644, (COPYRIGHT + quoted).encode())
    return found


def archive(files, time):
    """A tar of `files` and of their parent directories, all owned by root."""
    directories = {"/".join(name.split("/")[:depth]) for name in files for depth in range(1, name.count("/") + 1)}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name in ["", *sorted(directories | set(files))]:
            entry = tarfile.TarInfo("./" + name)
            entry.mtime, entry.uname, entry.gname = time, "root", "root"
            if name in files:
                entry.mode, content = files[name]
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
            else:
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(entry)
    return buffer.getvalue()


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    program, version, directory = sys.argv[1:]
    if not os.stat(program).st_mode & stat.S_IXUSR:
        sys.exit(f"deb.py: {program} cannot be executed; expected a program")
    last_commit = ["git", "-C", ROOT, "log", "-1", "--format=%ct"]
    time = int(os.environ.get("SOURCE_DATE_EPOCH") or subprocess.run(last_commit, capture_output=True, text=True).stdout or 0)
    files = contents(program)
    sums = "".join(f"{hashlib.md5(content).hexdigest()}  {name}\n" for name, (_, content) in sorted(files.items()))
    kibibytes = sum(len(content) for _, content in files.values()) // 1024 + 1
    control = {
        "control": (0o644, CONTROL.format(version=version, kibibytes=kibibytes).encode()),
        "conffiles": (0o644, b"/etc/sweetspot/policy.toml\n"),
        "md5sums": (0o644, sums.encode()),
    }
    members = [
        ("debian-binary", b"2.0\n"),
        ("control.tar.gz", gzip.compress(archive(control, time), mtime=0)),
        ("data.tar.xz", lzma.compress(archive(files, time))),
    ]
    path = os.path.join(directory, f"sweetspot_{version}-1_amd64.deb")
    with open(path, "wb") as package:
        package.write(b"!<arch>\n")
        for name, content in members:
            package.write(f"{name:<16}{time:<12}{0:<6}{0:<6}{0o100644:<8o}{len(content):<10}`\n".encode())
            package.write(content + b"\n" * (len(content) % 2))
    print(path)


if __name__ == "__main__":
    main()
