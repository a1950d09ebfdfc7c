#!/usr/bin/env python3
"""Prints the licences of all crates that are in a program, as their authors have written them: most of them must go along with a program.

    third_party_licences.py TARGET PACKAGE…
"""

import json
import subprocess
import sys
from pathlib import Path

NAMES = ("LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE", "COPYRIGHT")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main():
    target, packages = sys.argv[1], sys.argv[2:]
    options = [option for package in packages for option in ("-p", package)]
    tree = run(
        "cargo", "tree", "--locked", "--target", target, "-e", "normal", "--prefix", "none", "--format", "{p}", *options
    )
    # "name v1.0.0", and more for a crate of ours or a derive.
    used = {tuple(line.split(" ")[:2]) for line in tree.splitlines() if line}
    metadata = json.loads(run("cargo", "metadata", "--locked", "--format-version", "1"))
    without = []
    for package in sorted(metadata["packages"], key=lambda package: (package["name"], package["version"])):
        if package["source"] is None or (package["name"], f"v{package['version']}") not in used:
            continue
        folder = Path(package["manifest_path"]).parent
        texts = sorted(
            file for file in folder.iterdir() if file.is_file() and file.name.upper().startswith(NAMES)
        )
        print(f"==== {package['name']} {package['version']}: {package['license'] or 'see below'}")
        print(f"by {', '.join(package['authors']) or 'its authors'}, {package['repository'] or package['homepage'] or ''}\n")
        for text in texts:
            print(f"---- {text.name}\n\n{text.read_text(errors='replace').strip()}\n")
        if not texts:
            without.append(package["name"])
    if without:
        print(f"without a file of their licence: {', '.join(without)}", file=sys.stderr)


if __name__ == "__main__":
    main()
