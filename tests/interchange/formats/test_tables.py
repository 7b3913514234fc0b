"""Tables as CSV: every writer here makes cells that no spreadsheet computes."""

import ast
import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest

from ccl.collective import all_gather
from ccl.problem import Problem
from ccl.serialization.documents import document
from ccl.serialization.text import csv_text
from ccl.topology import Topology
from formulations import solve
from interchange.formats.catalogue import writers
from tests.ccl.clusters import ring

ROOT = Path(__file__).resolve().parents[3]
SIGNS = ("=", "+", "-", "@", "\t", "\r")
FORMULA = '=HYPERLINK("http://evil.example","g0")'


@pytest.mark.parametrize("sign", SIGNS)
def test_a_text_that_begins_as_a_formula_gets_an_apostrophe(sign):
    cells = [f"{sign}1+1", f" {sign}cmd", sign]
    table = io.StringIO(csv_text([cells]), newline="")
    assert list(csv.reader(table)) == [[f"'{each}" for each in cells]]


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n"])
def test_a_cell_with_lines_begins_no_row(end):
    text = csv_text([[f"g0{end}=1+1", "g1"]])
    assert list(csv.reader(io.StringIO(text, newline=""))) == [[f"g0{end}=1+1", "g1"]]


def test_numbers_and_plain_texts_stay():
    row = [-1, -1.5, "-1.5", "+3e-7", "-2E5", "g0", "a=b", "", None, "1-2"]
    assert csv_text([row]) == "-1,-1.5,-1.5,+3e-7,-2E5,g0,a=b,,,1-2\n"


def test_a_number_of_other_digits_is_no_number():
    """Spreadsheets read digits of ASCII only, and what they cannot read may be a formula."""
    assert csv_text([["-\u0661"]]) == "'-\u0661\n"


def named_as_formulas(topology: Topology) -> Topology:
    new = {
        each.name: f"{sign}{each.name}"
        for each, sign in zip(topology.devices, SIGNS * 9, strict=False)
    }
    new[topology.devices[0].name] = FORMULA
    return Topology(
        topology.name,
        tuple(replace(each, name=new[each.name]) for each in topology.devices),
        tuple(replace(each, src=new[each.src], dst=new[each.dst]) for each in topology.links),
    )


def split(cell):
    return csv.reader(io.StringIO(cell, newline=""), delimiter=";")


@pytest.mark.parametrize("writer", [each for each in writers() if each.ending == "csv"])
def test_no_file_holds_a_formula_whatever_devices_are_called(writer):
    problem = Problem(named_as_formulas(ring(6)), all_gather(6, 6e6))
    content = document(solve(problem, "list", time_limit=1))
    written = writer.write(content, writer.options()).content.decode()

    rows = list(csv.reader(io.StringIO(written, newline="")))
    cells = [cell for row in rows for cell in row]
    parts = [part for cell in cells for part in next(split(cell), [])]
    assert any(FORMULA in cell for cell in cells)
    assert [each for each in cells + parts if each.startswith(SIGNS)] == []


def test_nothing_else_writes_csv():
    """All tables are written by one function, so that none is forgotten."""
    found = {
        path.relative_to(ROOT).as_posix()
        for package in ("ccl", "interchange", "formulations", "gallery", "widgets", "designer")
        for path in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and ast.unparse(node) in {"csv.writer", "csv.DictWriter"}
    }
    assert found == {"ccl/serialization/text.py"}
