"""Under which licences what is installed is.

``python tools/audit.py`` reads the licence of every pinned package that is installed and compares
the table in `docs/licences.md`: a package without a row, a row without a package and a licence
that is not the row's fail; ``--write`` writes the table anew. Nothing is asked of anybody outside:
known weaknesses of packages are not looked up.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements.lock"
TABLE = ROOT / "docs" / "licences.md"

TABLE_HEADER = """\
# Licences of what is installed

Topoloom is under the MIT License; what it carries in itself stands in `THIRD_PARTY.md`. These
packages are installed beside it, to run it, for its tests or for an extra. The table is made from
their own metadata (`make licences`) and compared with it in every run of the tests. `igraph` is
under the GNU GPL: Topoloom calls it as a library of its own, and whoever passes on both as one
passes on the whole under that licence. PyTorch, an extra that is not pinned, is under BSD-3-Clause.

| package | licence |
|---|---|
"""

_SPDX = {
    "apache": "Apache-2.0",
    "bsd": "BSD",
    "gnu general public license v2 or later": "GPL-2.0-or-later",
    "gnu lesser general public license v3": "LGPL-3.0",
    "isc": "ISC",
    "mit": "MIT",
    "mozilla": "MPL-2.0",
    "python software foundation": "PSF-2.0",
    "unlicense": "Unlicense",
    "zope": "ZPL-2.1",
}
"""Part of a classifier or of free words, in small letters -> how it is written in the table."""


def plain(name: str) -> str:
    """Return the one spelling that stands for all of a package's."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pinned() -> set[str]:
    """Return the names in the lock."""
    return set(re.findall(r"^([a-z0-9-]+)==", LOCK.read_text("utf-8"), re.MULTILINE))


def licence(package: metadata.PackageMetadata) -> str:
    """Return the licence that a package says it is under, as short as can be."""
    if "License-Expression" in package:
        return package["License-Expression"]
    told = [
        each.rpartition("::")[2].strip()
        for each in package.get_all("Classifier") or []
        if each.startswith("License ::") and not each.endswith("OSI Approved")
    ]
    words = package["License"].strip().splitlines() if "License" in package else []
    found = dict.fromkeys(_short(each) for each in told or words[:1])
    return " or ".join(found) or "not told"


def _short(words: str) -> str:
    small = words.lower()
    return next((short for part, short in _SPDX.items() if part in small), words)


def licences() -> dict[str, str]:
    """Return name -> licence of every pinned package that is installed."""
    pins = pinned()
    packages = [each.metadata for each in metadata.distributions()]
    found = {plain(each["Name"]): licence(each) for each in packages}
    return {name: found[name] for name in sorted(found) if name in pins}


def read_table() -> dict[str, str]:
    """Return name -> licence as the table has them."""
    rows = re.findall(r"^\| ([a-z0-9-]+) \| (.+) \|$", TABLE.read_text("utf-8"), re.MULTILINE)
    return dict(row for row in rows if row[0] != "package")


def check_licences(found: Mapping[str, str], table: Mapping[str, str]) -> list[str]:
    """Return what the table says otherwise than the packages that are installed."""
    pins = pinned()
    wrong = [f"{name} is pinned and has no row" for name in found if name not in table]
    wrong += [f"{name} has a row and is not pinned" for name in table if name not in pins]
    wrong += [
        f"{name} is under {told}, and its row says {table[name]}"
        for name, told in found.items()
        if table.get(name, told) != told
    ]
    silent = [name for name, told in found.items() if told == "not told"]
    return wrong + [f"{name} does not tell its licence" for name in silent]


def main() -> int:
    """Do what the command line asks; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    found = licences()
    if asked.write:
        kept = read_table() if TABLE.exists() else {}
        rows = {**{name: told for name, told in kept.items() if name not in found}, **found}
        lines = [f"| {name} | {rows[name]} |" for name in sorted(rows)]
        TABLE.write_text(TABLE_HEADER + "\n".join(lines) + "\n", "utf-8")
    wrong_rows = check_licences(found, read_table())
    print("\n".join([*wrong_rows, f"{len(found)} packages, their licences as in {TABLE.name}"]))
    return int(bool(wrong_rows))


if __name__ == "__main__":
    sys.exit(main())
