"""XML is read without trust."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccl.errors import FormatError
from interchange.formats.xml import MOST_DEPTH, Element, begins_with, parse_xml, xml_text

BOMB = b"""<!DOCTYPE a [<!ENTITY x "xxxxxxxxxx"><!ENTITY y "&x;&x;&x;&x;">]><a>&y;</a>"""
OUTSIDE = b"""<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/hostname">]><a>&x;</a>"""
PARAMETER = b"""<!DOCTYPE a [<!ENTITY % x SYSTEM "file:///etc/hostname"> %x;]><a/>"""


def test_elements_know_their_lines():
    root = parse_xml(b'<a>\n <b x="0x10" y="2.5"/>\n text\n <c/><b x="3"/></a>')

    assert [each.line for each in root.children] == [2, 4, 4]
    assert [each.integer("x") for each in root.each("b")] == [16, 3]
    assert root.children[0].number("y") == 2.5
    assert [each.tag for each in root.everywhere("a", "c")] == ["a", "c"]


@pytest.mark.parametrize("content", [BOMB, OUTSIDE, PARAMETER])
def test_entities_are_refused(content):
    with pytest.raises(FormatError, match="entities"):
        parse_xml(content)


def test_a_document_type_alone_is_let_through_and_not_fetched():
    root = parse_xml(b'<!DOCTYPE topology SYSTEM "file:///does/not/exist.dtd"><topology/>')

    assert root.tag == "topology"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "line 1, column 1"),
        (b"<a>\n<b></a>", "line 2, column 6"),
        (b"<a/><b/>", "junk"),
        (b'<?xml version="1.0" encoding="none-such"?><a/>', "UTF-8"),
        (b"<a>" * (MOST_DEPTH + 1), "deep"),
        (b"<a>" + b"<b/>" * 100 + b"</a>", "100 elements"),
        (b"<a>" + b" " * 10_000 + b"</a>", "10,007 bytes"),
    ],
)
def test_what_is_wrong_is_told(content, told):
    with pytest.raises(FormatError, match=told):
        parse_xml(content, most_elements=100, most_bytes=5_000)


@pytest.mark.parametrize("word", ["", "x", "1.5", "0xg", str(2**64)])
def test_a_number_that_is_none_is_told_with_its_line(word):
    root = parse_xml(f'<a>\n<b n="{word}"/></a>'.encode())

    with pytest.raises(FormatError, match="line 2: <b n="):
        root.children[0].integer("n")


@pytest.mark.parametrize("word", ["", "inf", "nan", "1e999", "0x1"])
def test_a_number_that_is_not_finite_is_told(word):
    with pytest.raises(FormatError, match="finite"):
        parse_xml(f'<a n="{word}"/>'.encode()).number("n")


def test_a_missing_attribute_is_told_unless_it_has_a_default():
    root = parse_xml(b"<a/>")

    assert (root.integer("n", 3), root.number("n", 0.5), root.text("n", "-")) == (3, 0.5, "-")
    with pytest.raises(FormatError, match="<a> has no n; add it"):
        root.integer("n")


def test_what_is_written_is_read_again():
    text = '<a x="1 &lt; 2 &amp; &quot;3&quot;">\n  <b/>\n</a>\n'

    assert parse_xml(xml_text(parse_xml(text.encode())).encode()).attributes["x"] == '1 < 2 & "3"'


def test_an_element_keeps_the_text_in_it_and_drops_the_space_between_elements():
    root = parse_xml("<a>\n <b> 1 &lt; ü </b>\n <c><![CDATA[<x>]]></c> <d/></a>".encode())

    assert [each.content for each in root.children] == [" 1 < ü ", "<x>", ""]
    assert root.content == ""
    assert parse_xml(b"<a>one <b/>two</a>").content == "one two"


@settings(deadline=None)
@given(
    st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn"])) | st.just("a\r\nb\tc ]]> &lt;")
)
def test_text_that_is_written_is_read_again(text):
    """A carriage return is escaped, or the parser would make a new line of it."""
    written = xml_text(Element("a", {"x": text}, [Element("b", content=text)]))
    read = parse_xml(written.encode())

    assert read.attributes["x"] == text
    assert read.children[0].content == text


@pytest.mark.parametrize("sign", ["\0", "\x1b", "\ufffe", "\ud800"])
def test_a_sign_that_xml_cannot_hold_is_told(sign):
    with pytest.raises(FormatError, match=f"U[+]{ord(sign):04X}"):
        xml_text(Element("a", {"x": f"gpu{sign}"}))


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"<a/>", True),
        (b"\xef\xbb\xbf <?xml version='1.0'?><!-- <b> --><!DOCTYPE a>\n<a x='1'>", True),
        (b"<ab/>", False),
        (b"{}", False),
        (b"<?xml", False),
        (b"", False),
    ],
)
def test_the_first_element_is_recognised(content, found):
    assert begins_with(content, "a") is found
