"""All formats keep to the contract of `interchange.formats.format`."""

import re

import pytest

from ccl.errors import FormatError
from ccl.options import option_fields
from interchange.formats.catalogue import read_content, reader, readers, writer, writers
from interchange.formats.format import Request

READERS = [each.name for each in readers()]
WRITERS = [each.name for each in writers()]
NOTHING = (b"", b"{}", b"[]", b"<a/>", b"\x00\xff\xfe", b"text\n", b"\xef\xbb\xbf", b'"x"', b"<")


def test_names_are_unique_and_typed_easily():
    for names in (READERS, WRITERS):
        assert len(set(names)) == len(names)
        assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in names)


@pytest.mark.parametrize("content", NOTHING)
def test_nothing_is_recognised_in_nothing(content):
    assert [each.name for each in readers() if each.recognises(content)] == []
    with pytest.raises(FormatError, match="of no format that is read"):
        read_content(content, Request(name="x.txt"))


@pytest.mark.parametrize("content", NOTHING)
@pytest.mark.parametrize("name", READERS)
def test_nothing_is_refused_with_the_name_of_the_file(name, content):
    with pytest.raises(FormatError, match=r"^x\.txt"):
        reader(name).read(content, Request(name="x.txt"))


@pytest.mark.parametrize("name", WRITERS)
def test_options_of_writers_have_labels(name):
    assert all(each.label for each in option_fields(writer(name).options))


@pytest.mark.parametrize("find", [reader, writer])
def test_an_unknown_format_is_told(find):
    with pytest.raises(FormatError, match="no format called 'x'"):
        find("x")
