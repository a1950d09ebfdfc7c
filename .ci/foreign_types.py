#!/usr/bin/env python3
"""Compares the crates whose types and traits are in a public interface with the list in its manifest.

    foreign_types.py TARGET-DOC PACKAGE…

TARGET-DOC has the JSON that rustdoc has written for each package, and for those packages of the workspace whose items it exports.
An incompatible version of a crate in the list is an incompatible version of ours. The list is the table `package.metadata.foreign-types`:
each crate, and where it appears.
"""

import json
import subprocess
import sys
from pathlib import Path

# Their versions are those of the compiler.
STANDARD = {"std", "core", "alloc", "proc_macro"}


class Crate:
    """The public items of a crate, by the JSON of rustdoc."""

    def __init__(self, file):
        document = json.loads(file.read_text())
        self.name = document["index"][str(document["root"])]["name"]
        self.root = document["root"]
        self.index = document["index"]
        self.paths = document["paths"]
        self.external = {int(key): value["name"] for key, value in document["external_crates"].items()}
        self.by_path = {
            "::".join(value["path"]): int(key) for key, value in self.paths.items() if value["crate_id"] == 0
        }

    def crate_of(self, id_):
        """The name of the crate that defines an item, and its path there; nothing for what has no path, such as a parameter."""
        path = self.paths.get(str(id_))
        if path is None:
            return None
        name = self.name if path["crate_id"] == 0 else self.external[path["crate_id"]]
        return name, "::".join(path["path"])


def references(value):
    """The ids of all items that a part of the JSON names: a path has an id and arguments, an import an id and a source."""
    if isinstance(value, dict):
        if isinstance(value.get("id"), int) and ("path" in value or "source" in value):
            yield value["id"]
        for part in value.values():
            yield from references(part)
    elif isinstance(value, list):
        for part in value:
            yield from references(part)


def children(item):
    """The items within an item: of a module, a type, a trait or an impl, and what implements it."""
    for kind, inner in item["inner"].items():
        if not isinstance(inner, dict):
            continue
        for key in ("items", "impls", "implementations", "fields", "variants"):
            if isinstance(inner.get(key), list):
                yield from (id_ for id_ in inner[key] if isinstance(id_, int))
        shape = inner.get("kind")
        if isinstance(shape, dict):
            for form in shape.values():
                fields = form if isinstance(form, list) else form.get("fields", []) if isinstance(form, dict) else []
                yield from (id_ for id_ in fields if isinstance(id_, int))


def is_written(item):
    """Whether the item is in the source: not an impl that holds for every type."""
    implementation = item["inner"].get("impl")
    return implementation is None or not (implementation["is_synthetic"] or implementation["blanket_impl"])


def leads_on(item):
    """Whether the types that the item names belong to the interface because it does. An impl of a trait, such as a conversion, may name
    types that the interface does not have otherwise."""
    return "impl" not in item["inner"] or item["inner"]["impl"]["trait"] is None


def foreign(name, crates):
    """The foreign crates in the interface of the crate, each with one place where it appears."""
    found = {}
    waiting = [(name, crates[name].root, name, True)]
    seen = set()
    while waiting:
        owner, id_, place, leads = waiting.pop()
        if (owner, id_) in seen:
            continue
        seen.add((owner, id_))
        crate = crates[owner]
        item = crate.index.get(str(id_))
        if item is None or not is_written(item):
            continue
        if item["name"] and item["name"] != place:
            place = f"{place}::{item['name']}"
        if leads_on(item):
            waiting.extend((owner, child, place, True) for child in children(item))
        else:
            leads = False
            kinds = ((child, crate.index.get(str(child), {"inner": {}})["inner"]) for child in children(item))
            waiting.extend((owner, child, place, "assoc_type" in kind) for child, kind in kinds)
        for named in references(item["inner"]):
            definition = crate.crate_of(named)
            if definition is None:
                waiting.append((owner, named, place, leads))
                continue
            definer, path = definition
            if definer not in crates:
                if definer not in STANDARD:
                    found.setdefault(definer, f"{path} in {place}")
            elif leads and definer == owner:
                waiting.append((owner, named, path, True))
            elif leads and path in crates[definer].by_path:
                waiting.append((definer, crates[definer].by_path[path], path, True))
    return found


def main():
    directory, packages = Path(sys.argv[1]), sys.argv[2:]
    crates = {crate.name: crate for crate in map(Crate, sorted(directory.glob("tablesdk*.json")))}
    metadata = json.loads(
        subprocess.run(
            ["cargo", "metadata", "--locked", "--no-deps", "--format-version", "1"], check=True, capture_output=True
        ).stdout
    )
    lists = {package["name"]: (package["metadata"] or {}).get("foreign-types", {}) for package in metadata["packages"]}
    failed = False
    for package in packages:
        found, listed = foreign(package.replace("-", "_"), crates), lists[package]
        for crate in sorted(found.keys() - listed.keys()):
            print(f"{package}: {crate} is in the public interface, and not in the list: {found[crate]}")
            failed = True
        for crate in sorted(listed.keys() - found.keys()):
            print(f"{package}: {crate} is in the list, and not in the public interface")
            failed = True
        print(f"{package}: {', '.join(sorted(found)) or 'none'}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
