#!/usr/bin/env python3
"""Runs a command as on a machine that has only what README asks for: Rust, a C compiler, make and python3.

Usage: scripts/without-tools.py COMMAND...      or --list: the optional tools of this machine, which COMMAND would not find

In a mount namespace, /usr/bin and its like keep the programs of Debian's required packages, of the C compiler, make, python3 and
Rust. All other programs are hidden, from absolute paths, too, and PATH names these directories alone. The exit code is the
command's, or 3 where programs cannot be hidden: that needs root, and dpkg to tell the package of a program.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

# The packages that README requires; their dependencies are included.
ASKED_FOR = ["build-essential", "gcc", "libc6-dev", "make", "python3", "python3-venv"]
RUST = ["cargo", "cargo-clippy", "cargo-fmt", "clippy-driver", "rustc", "rustdoc", "rustfmt", "rustup"]
DIRECTORIES = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/games"]
# Tools that tests or the program run if they are there: none may remain visible.
OPTIONAL = """
    bpftool capinfos chromedriver chromium chromium-browser clang curl dumpcap google-chrome ip iperf3 java nc nginx node ns
    ping podman docker promtool qperf rsync scp sftp ss ssh ssh-keygen sshd strace systemd-analyze tc tcpdump tcptrace tshark valgrind wget
""".split()
CANNOT = 3


def cannot(reason):
    print(f"without-tools: optional tools cannot be hidden here: {reason}", file=sys.stderr)
    sys.exit(CANNOT)


def installed_packages():
    """Each installed package, with whether Debian requires it and the names of the packages on which it depends."""
    form = r"${Package}\t${db:Status-Status}\t${Essential}\t${Priority}\t${Pre-Depends}, ${Depends}\t${Provides}\n"
    listed = subprocess.run(["dpkg-query", "--show", "--showformat", form], check=True, capture_output=True, text=True)
    packages, providers = {}, {}
    for line in listed.stdout.splitlines():
        name, status, essential, priority, depends, provides = line.split("\t")
        if status != "installed":
            continue
        packages[name] = (essential == "yes" or priority == "required", depends)
        for provided in names_in(provides):
            providers.setdefault(provided[0], name)
    return packages, providers


def names_in(dependencies):
    """The alternatives of each dependency, by name: `a (>= 1), b | c` is [[a], [b, c]]."""
    clauses = [clause.strip() for clause in dependencies.split(",") if clause.strip()]
    return [[re.split(r"[ (:\[]", name.strip())[0] for name in clause.split("|")] for clause in clauses]


def wanted_packages():
    packages, providers = installed_packages()
    to_do = [name for name, (required, _) in packages.items() if required]
    to_do += [name for name in ASKED_FOR if name in packages]
    wanted = set()
    while to_do:
        name = to_do.pop()
        if name in wanted:
            continue
        wanted.add(name)
        for alternatives in names_in(packages[name][1]):
            known = [n if n in packages else providers.get(n) for n in alternatives]
            to_do += [n for n in known if n][:1]
    return wanted


def real(path):
    """The path with links in its directory resolved, so that /bin/sh and /usr/bin/sh are the same."""
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def wanted_files():
    listed = subprocess.run(["dpkg-query", "--listfiles", *wanted_packages()], capture_output=True, text=True)
    return {real(path) for path in listed.stdout.splitlines() if path.startswith("/")}


def kept(directory, wanted):
    """The names of programs that remain in a directory: wanted files, and links to them such as alternatives."""
    entries = [os.path.join(directory, name) for name in sorted(os.listdir(directory))]
    return [path for path in entries if path in wanted or real(os.path.realpath(path)) in wanted]


def inside(stage, command):
    """In the mount namespace: covers each program directory with a copy of the remaining files, and executes the command."""
    wanted = wanted_files()
    python = shutil.which("python3") and subprocess.run(
        ["python3", "-c", "import sys; print(sys.executable)"], check=True, capture_output=True, text=True
    ).stdout.strip()
    rust = {name: path for name in RUST if (path := shutil.which(name))}
    directories = list(dict.fromkeys(os.path.realpath(d) for d in DIRECTORIES if os.path.isdir(d)))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "none", stage], check=True)
    covers = {}
    for number, directory in enumerate(directories):
        covers[directory] = os.path.join(stage, str(number))
        os.mkdir(covers[directory])
        remaining = kept(directory, wanted)
        if remaining:
            subprocess.run(["cp", "--archive", *remaining, covers[directory]], check=True)
    own = covers[os.path.realpath("/usr/local/bin")]
    for name, path in rust.items():
        os.symlink(path, os.path.join(own, name))
    if python and not os.path.lexists(os.path.join(covers[os.path.realpath("/usr/bin")], "python3")):
        os.symlink(python, os.path.join(own, "python3"))
    mounts = "".join(f"mount --bind {cover} {directory}\n" for directory, cover in covers.items())
    subprocess.run(["sh", "-euc", mounts], check=True)
    subprocess.run(["umount", "--lazy", stage], check=True)
    os.rmdir(stage)
    os.environ["PATH"] = ":".join(DIRECTORIES)
    visible = [path for name in OPTIONAL if (path := shutil.which(name))]
    if visible:
        sys.exit(f"without-tools: still visible: {' '.join(visible)}")
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.exit(f"without-tools: {command[0]}: {error}")


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["--inside"]:
        inside(arguments[1], arguments[2:])
    if not arguments:
        sys.exit(__doc__)
    if os.geteuid() != 0:
        cannot("run as root")
    if not shutil.which("dpkg-query"):
        cannot("there is no dpkg")
    if subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL).returncode != 0:
        cannot("the kernel allows no mount namespace")
    found = " ".join(name for name in OPTIONAL if shutil.which(name, path=f"{os.environ['PATH']}:{':'.join(DIRECTORIES)}"))
    if arguments == ["--list"]:
        print(found)
        return
    print(f"without-tools: hidden: {found or 'no optional tool, as none is here'}", file=sys.stderr)
    again = [sys.executable, os.path.abspath(__file__), "--inside", tempfile.mkdtemp(prefix="without-tools."), *arguments]
    os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", *again])


if __name__ == "__main__":
    main()
