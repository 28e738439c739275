#!/usr/bin/env python3
"""Prints the components of the program as a CycloneDX 1.5 document, from cargo's own metadata: no cargo-cyclonedx is needed.

Usage: scripts/sbom.py TARGET > FILE      (TARGET such as x86_64-unknown-linux-gnu)

A component is a crate that is compiled into the program. Crates that only build or test it, such as derive macros, are left out.
"""

import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM = "sweetspot"
# The features of the installed program (Makefile, scripts/dist.sh).
FEATURES = "sweetspot/jemalloc"


def checksums():
    """The SHA-256 of each crate from the registry, by name and version."""
    with open(os.path.join(ROOT, "Cargo.lock"), encoding="utf-8") as file:
        entry = re.compile(r'name = "(.*)"\nversion = "(.*)"\n(?:source = .*\n)?(?:checksum = "(.*)"\n)?')
        return {(name, version): checksum for name, version, checksum in entry.findall(file.read())}


def compiled(metadata):
    """The crates that the program links, with the dependencies of each."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    packages = {package["id"]: package for package in metadata["packages"]}
    macros = {crate for crate, package in packages.items() if any("proc-macro" in target["kind"] for target in package["targets"])}
    found = {}
    waiting = [package["id"] for package in metadata["packages"] if package["name"] == PROGRAM]
    while waiting:
        crate = waiting.pop()
        if crate not in found:
            linked = [edge for edge in nodes[crate]["deps"] if any(kind["kind"] is None for kind in edge["dep_kinds"])]
            needed = [edge["pkg"] for edge in linked if edge["pkg"] not in macros]
            found[crate] = sorted(needed)
            waiting.extend(needed)
    return found


def component(package, sums):
    name, version = package["name"], package["version"]
    described = {
        "type": "application" if name == PROGRAM else "library",
        "bom-ref": f"{name}@{version}",
        "name": name,
        "version": version,
        "purl": f"pkg:cargo/{name}@{version}",
    }
    if package["license"]:
        # Cargo formerly separated alternatives with a slash.
        described["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if sums.get((name, version)):
        described["hashes"] = [{"alg": "SHA-256", "content": sums[name, version]}]
    return described


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--features", FEATURES]
    command += ["--filter-platform", sys.argv[1]]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout)
    sums = checksums()
    packages = {package["id"]: package for package in metadata["packages"]}
    crates = compiled(metadata)
    components = {crate: component(packages[crate], sums) for crate in crates}
    program = next(described for described in components.values() if described["name"] == PROGRAM)
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": program},
        "components": sorted((c for c in components.values() if c is not program), key=lambda c: c["bom-ref"]),
        "dependencies": sorted(
            (
                {"ref": components[crate]["bom-ref"], "dependsOn": [components[needed]["bom-ref"] for needed in needs]}
                for crate, needs in crates.items()
            ),
            key=lambda dependency: dependency["ref"],
        ),
    }
    json.dump(document, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
