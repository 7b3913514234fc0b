"""Whether what is installed is what was locked, and under which licences it is.

``python tools/audit.py files REPORT ...`` reads pip's reports of what it has installed and compares
each file with `requirements.sha256`: a file of a listed name with another content fails the build.
A file that is not listed (another platform, another Python, an older pin) is told, and fails in CI.

``python tools/audit.py licences`` reads the licence of every pinned package that is installed and
compares the table in `docs/licences.md`: a package without a row, a row without a package and a
licence that is not the row's fail; ``--write`` writes the table anew. Nothing is asked of anybody
outside: known weaknesses of packages are not looked up.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements.lock"
HASHES = ROOT / "requirements.sha256"
TABLE = ROOT / "docs" / "licences.md"

HASHES_HEADER = """\
# sha256 of the files that CI installs (CPython 3.11, Linux, x86-64), made by `make lock`.
"""
TABLE_HEADER = """\
# Licences of what is installed

Topoloom is under the MIT License; what it carries in itself stands in `THIRD_PARTY.md`. These
packages are installed beside it, to run it, for its tests or for an extra. The table is made from
their own metadata (`make licences`) and compared with it in every run of the tests. `igraph` is
under the GNU GPL: Topoloom calls it as a library of its own, and whoever passes on both as one
passes on the whole under that licence.

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


def file_hashes(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield name and sha256 of each file that a report of pip installs from an index.

    Local builds (``torch 2.13.0+cpu``) are other files on each machine, so they are left out, and
    so is what is installed from a folder.
    """
    for entry in report["install"]:
        archive = entry["download_info"].get("archive_info")
        if archive is None or "+" in entry["metadata"]["version"]:
            continue
        name = unquote(urlsplit(entry["download_info"]["url"]).path).rpartition("/")[2]
        yield name, archive["hashes"]["sha256"]


def write_hashes(report: Mapping[str, Any]) -> None:
    """Write the file of hashes from pip's report of an installation into nothing."""
    rows = sorted(f"{digest}  {name}" for name, digest in file_hashes(report))
    rows.sort(key=lambda row: row.partition("  ")[2].lower())
    HASHES.write_text(HASHES_HEADER + "\n".join(rows) + "\n", "utf-8")


def read_hashes() -> dict[str, str]:
    """Return file name -> sha256 of what is locked."""
    lines = HASHES.read_text("utf-8").splitlines()
    pairs = (line.split("  ", 1) for line in lines if line and not line.startswith("#"))
    return {name: digest for digest, name in pairs}


def check_files(reports: Iterable[Mapping[str, Any]], locked: Mapping[str, str]) -> tuple[int, ...]:
    """Print which files of some reports are not locked; count those right, wrong and unknown."""
    right = wrong = unknown = 0
    for name, digest in (pair for report in reports for pair in file_hashes(report)):
        if name not in locked:
            unknown += 1
            print(f"{name}: not among the locked files")
        elif locked[name] != digest:
            wrong += 1
            print(f"{name}: sha256 {digest}, and {locked[name]} is locked; do not use it")
        else:
            right += 1
    return right, wrong, unknown


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
    pins = {line.partition("==")[0] for line in LOCK.read_text("utf-8").splitlines()}
    packages = [each.metadata for each in metadata.distributions()]
    found = {plain(each["Name"]): licence(each) for each in packages}
    return {name: found[name] for name in sorted(found) if name in pins}


def read_table() -> dict[str, str]:
    """Return name -> licence as the table has them."""
    rows = re.findall(r"^\| ([a-z0-9-]+) \| (.+) \|$", TABLE.read_text("utf-8"), re.MULTILINE)
    return dict(row for row in rows if row[0] != "package")


def check_licences(found: Mapping[str, str], table: Mapping[str, str]) -> list[str]:
    """Return what the table says otherwise than the packages that are installed."""
    pins = {line.partition("==")[0] for line in LOCK.read_text("utf-8").splitlines()}
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
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("files").add_argument("reports", nargs="+", type=Path)
    commands.add_parser("licences").add_argument("--write", action="store_true")
    asked = parser.parse_args()
    if asked.command == "files":
        reports = [json.loads(each.read_text("utf-8")) for each in asked.reports if each.exists()]
        right, wrong, unknown = check_files(reports, read_hashes())
        print(f"{right} files are those that were locked, {wrong} are not, {unknown} are unknown")
        return int(wrong > 0 or (unknown > 0 and bool(os.environ.get("CI"))))
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
