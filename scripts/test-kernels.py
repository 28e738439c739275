#!/usr/bin/env python3
"""Runs every verb on the kernels of scripts/kernels/list, in QEMU, and prints verbs by kernels.

Usage: scripts/test-kernels.py [--out FILE] [--only NAME,NAME...] [VERB...]

The kernels come from Debian's packages (apt-get download into target/kernels; nothing is installed). It needs qemu-system-x86,
busybox-static, cpio and zstd, and Debian's archive keyring, but no KVM. VERBs are as in scripts/kernels/guest.sh. --out writes the table as Markdown. Fails if a verb fails without naming what the kernel lacks.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KERNELS = os.path.join(ROOT, "scripts/kernels")
TARGET = os.path.join(ROOT, "target/kernels")
PROGRAM = os.path.join(ROOT, "target/dist/sweetspot")
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
TOOLS = {"qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static", "cpio": "cpio", "zstd": "zstd"}
# Packages that contain a kernel: one package up to Debian 13, later one for the binary and one for
# the modules.
PARTS = ("linux-image-", "linux-binary-", "linux-modules-")


def apt(release, *command):
    """The output of apt-get or apt-cache, restricted to `release`."""
    home = os.path.join(TARGET, release)
    for directory in ("lists/partial", "cache/archives/partial", "debs"):
        os.makedirs(os.path.join(home, directory), exist_ok=True)
    sources = os.path.join(home, "sources.list")
    with open(sources, "w", encoding="utf-8") as file:
        file.write(f"deb [arch=amd64 signed-by={KEYRING}] http://deb.debian.org/debian {release} main\n")
    options = {
        "Dir::State::Lists": f"{home}/lists",
        "Dir::State::Status": "/dev/null",
        "Dir::Cache": f"{home}/cache",
        "Dir::Etc::SourceList": sources,
        "Dir::Etc::SourceParts": "/dev/null",
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
    }
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    ran = subprocess.run(
        [command[0], *words, *command[1:]], cwd=f"{home}/debs", stdout=subprocess.PIPE, text=True, check=False
    )
    if ran.returncode != 0:
        sys.exit(f"test-kernels: {' '.join(command)} failed for {release}")
    return ran.stdout


def depends(release, package):
    listed = apt(release, "apt-cache", "depends", "--important", package)
    return [line.split()[-1] for line in listed.splitlines() if "Depends:" in line]


def packages(release):
    """The names of the newest kernel's packages in `release`."""
    found, seen, ahead = [], set(), ["linux-image-amd64"]
    while ahead:
        package = ahead.pop()
        if package in seen:
            continue
        seen.add(package)
        if package.startswith(PARTS) and "unsigned" not in package and package != "linux-image-amd64":
            found.append(package)
        # The name of a kernel package contains its version; other dependencies contain no kernel.
        ahead += [name for name in depends(release, package) if name.startswith(("linux-base-", *PARTS))]
    return found


def fetched(release):
    """The kernel's packages as files, including those downloaded earlier."""
    apt(release, "apt-get", "--quiet", "update")
    names = packages(release)
    apt(release, "apt-get", "--quiet", "download", *names)
    debs = os.path.join(TARGET, release, "debs")
    files = [os.path.join(debs, file) for file in sorted(os.listdir(debs)) if file.split("_")[0] in names]
    # A package without a kernel depends on those that have one.
    return [file for file in files if os.path.getsize(file) > 1_000_000]


def boot(debs, verbs):
    """The rows and the release that guest.sh prints under this kernel."""
    surroundings = os.environ | {"LIMIT": "1500", "KERNEL_LINES": "3"}
    # Emulated CPUs are several times slower.
    script = ["SLOW=3", f"SWEETSPOT={PROGRAM}", os.path.join(KERNELS, "guest.sh"), *verbs]
    command = [os.path.join(KERNELS, "boot.sh"), ",".join(debs), "env", *script]
    ran = subprocess.run(command, env=surroundings, stdout=subprocess.PIPE, text=True, check=False)
    rows, kernel = {}, None
    for line in ran.stdout.splitlines():
        words = line.split("\t")
        if words[0] == "row":
            rows[words[1]] = (words[2], words[3])
        elif line.startswith("kernel "):
            kernel = line.split()[1]
        print(f"  {line}", flush=True)
    if kernel is None:
        sys.exit(f"test-kernels: {debs} did not boot: {ran.stdout[-1000:]}")
    return kernel, rows


def table(columns):
    """A Markdown table of verbs by kernels, with the named missing parts below it."""
    verbs = list(dict.fromkeys(verb for _, rows in columns for verb in rows))
    notes, lines = {}, []
    for verb in verbs:
        cells = []
        for _, rows in columns:
            word, words = rows.get(verb, ("FAILS", "did not run"))
            mark = "" if word == "works" else f" [{notes.setdefault(words, len(notes) + 1)}]"
            cells.append(("names the missing part" if word == "names" else word) + mark)
        lines.append(f"| `{verb}` | " + " | ".join(cells) + " |")
    head = ["| verb | " + " | ".join(kernel for kernel, _ in columns) + " |", "|---" * (len(columns) + 1) + "|"]
    below = [f"{number}. `{words}`" for words, number in notes.items()]
    return "\n".join([*head, *lines, "", *below])


def words_of(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()[0]


def write(path, columns, matrix):
    cells = [word for _, rows in columns for word, _ in rows.values()]
    counted = {word: cells.count(word) for word in ("works", "names", "FAILS")}
    with open(path, "w", encoding="utf-8") as file:
        file.write(
            "# Verbs by kernels\n\n"
            "- **Question**: does each verb work on the kernels that people run?\n"
            "- **Method**: boot Debian's kernels in QEMU without KVM, and run each verb once, as root unless the row says otherwise\n"
            "  (`scripts/kernels/guest.sh`). *Names the missing part*: the verb runs without that part, or not at all, and prints the\n"
            "  line below the table.\n"
            f"- **Result**: {counted['works']} of {len(cells)} cells work, {counted['names']} name the missing part, "
            f"{counted['FAILS']} fail.\n"
            "- **Limitation**: emulated processors are slow, so these runs measure no speed; kernels of Ubuntu and RHEL were not booted.\n"
            "- **Command**: `make test-kernels`, as root, "
            f"on {time.strftime('%Y-%m-%d')}, with {words_of(PROGRAM, '--version')} and {words_of('qemu-system-x86_64', '--version')}.\n\n"
            f"{matrix}\n"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--out")
    parser.add_argument("--only", default="")
    parser.add_argument("verb", nargs="*")
    arguments = parser.parse_args()
    lacking = [package for tool, package in TOOLS.items() if not shutil.which(tool)]
    if lacking or not os.path.exists(KEYRING):
        sys.exit("test-kernels: apt-get install " + " ".join([*lacking, "debian-archive-keyring"]))
    if not os.path.exists(PROGRAM):
        sys.exit("test-kernels: no target/dist/sweetspot (make build)")
    with open(os.path.join(KERNELS, "list"), encoding="utf-8") as file:
        listed = [line.split() for line in file if line.strip() and not line.startswith("#")]
    only = [name for name in arguments.only.split(",") if name]
    columns = []
    for release, name in listed:
        if only and name not in only:
            continue
        print(f"{name}: the newest kernel of Debian's {release}", flush=True)
        columns.append(boot(fetched(release), arguments.verb))
    matrix = table(columns)
    print(f"\n{matrix}")
    if arguments.out:
        write(arguments.out, columns, matrix)
    failed = sum(word == "FAILS" for _, rows in columns for word, _ in rows.values())
    print(f"\n{sum(map(len, (rows for _, rows in columns))) - failed} passed, {failed} failed")
    sys.exit(min(failed, 1))


if __name__ == "__main__":
    main()
