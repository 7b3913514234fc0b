"""Pictures and films of pixels: PNG, GIF and WebM."""

from __future__ import annotations

import io
import itertools
import sys

import pytest
from hypothesis import given, settings
from PIL import Image, ImageChops

from ccl.errors import FormatError
from ccl.serialization.documents import document
from ccl.topology import Topology, device
from gallery.registry import open_cluster
from tests.interchange.formats.strategies import drawings
from tests.widgets.test_pictures import PLACES, exchange, pair
from widgets.pages.writers import write
from widgets.print.geometry.stage import Stage
from widgets.print.sheet import unwritten
from widgets.print.style import DARK, LIGHT, OKABE_ITO, rgb
from widgets.print.view import View


def opened(content, to="png", **chosen):
    """Return what Pillow opens of a document that was written."""
    return Image.open(io.BytesIO(write(content, to, chosen).content))


def on(view, picture, point):
    """Return the colour of a picture at a point of the drawing."""
    x, y = ((point[axis] - view.frame[axis]) * view.zoom for axis in (0, 1))
    return picture.convert("RGB").getpixel((round(x), round(y)))


@pytest.mark.parametrize(("scale", "width"), [(1, 640), (2, 1280), (0.5, 320)])
def test_a_png_is_as_wide_as_asked_for(scale, width):
    picture = opened(document(pair()), width="640", scale=str(scale))

    assert picture.format == "PNG"
    assert picture.size[0] == width


@pytest.mark.parametrize(("style", "look"), [("light", LIGHT), ("dark", DARK)])
def test_boxes_are_where_the_drawing_has_them(style, look):
    """The middle of the lower half of a box has its colour, its left side that of GPUs.

    The view between the two has the line in its middle, and the ground at its corner.
    """
    content = document(pair(), positions=PLACES)
    picture = opened(content, style=style, width="900")
    view = View(Stage.of(pair(), PLACES), look, width=900.0)

    assert on(view, picture, (0.0, 20.0)) == rgb(look.surface)
    assert on(view, picture, (-39.0, 0.0)) == rgb(look.gpu)
    mixed = on(view, picture, (139.0, 0.0))
    assert mixed not in {rgb(look.bg), rgb(look.box), rgb(look.surface)}
    assert picture.convert("RGB").getpixel((3, 3)) == rgb(look.bg)


def test_a_frame_has_the_token_on_its_way():
    """After 50 of 100 µs the chunk of a is half way, its lane below the line: the colour of rank 0.

    y is 3.2 and half the width of a line of 10 GB/s, 1.3 + log2(1.5), below the middle.
    """
    content = exchange()
    picture = opened(content, style="dark", width="900", time="50", cut="false")
    view = View(Stage.of(pair(), PLACES), DARK, width=900.0, filled=True, captioned=True)

    assert on(view, picture, (139.0, 4.8)) == rgb(OKABE_ITO[0])
    assert on(view, picture, (139.0, -4.8)) == rgb(OKABE_ITO[1])


def test_a_png_is_the_same_each_time():
    assert opened(exchange(), time="30").tobytes() == opened(exchange(), time="30").tobytes()
    first, second = (write(exchange(), "png", {"time": "30"}).content for _ in range(2))
    assert first == second


@settings(max_examples=15, deadline=None)
@given(drawings())
def test_any_drawing_has_its_pixels(content):
    """Places may be far apart; something is there all the same."""
    picture = opened(content, width="300", style="paper").convert("RGB")

    assert len(picture.getcolors(1 << 20) or ()) > 1


def test_devices_far_apart_are_specks():
    """At 300 pixels for a million units a box is less than one; print has no dots beneath."""
    topology = Topology("far", (device("gpu", "a"), device("gpu", "b")), ())
    content = document(topology, positions={"a": (0.0, 0.0), "b": (1e6, 0.0)})
    picture = opened(content, width="300", style="paper").convert("L")
    seen = picture.point([255 * (level < 250) for level in range(256)]).getbbox()

    assert seen is not None
    assert seen[2] - seen[0] > 250


def test_names_that_the_font_lacks_are_told():
    content = document(Topology("names", (device("gpu", "名前"), device("gpu", "g → 1")), ()))

    (told,) = write(content, "png", {}).lost
    assert told.startswith("1 name")
    assert [unwritten(each) for each in ("名前", "g → 1 µs ≥ 2")] == [True, False]


def test_a_thousand_gpus_are_a_picture():
    picture = opened(document(open_cluster("dgx-a100:hosts=128")), width="1280")

    assert picture.size[0] == 1280


def test_a_picture_that_no_memory_holds_is_refused():
    with pytest.raises(FormatError, match="give less width or scale"):
        write(document(open_cluster("full-mesh")), "png", {"width": "8000", "scale": "4"})


# Films


def frames(content, **chosen):
    picture = opened(content, "gif", width="320", **chosen)
    found = []
    for number in range(picture.n_frames):
        picture.seek(number)
        found.append((picture.convert("RGB"), picture.info["duration"]))
    return found


def test_a_gif_has_the_frames_asked_for_and_they_differ():
    """2 s at 5 frames a second are 10, 200 ms each; the last stays for longer."""
    found = frames(exchange(), seconds="2", rate="5")

    assert [duration for _, duration in found] == [200] * 9 + [1500]
    for (one, _), (two, _) in itertools.pairwise(found):
        assert ImageChops.difference(one, two).getbbox() is not None


def test_a_gif_is_the_same_each_time():
    chosen = {"seconds": "1", "rate": "4", "width": "320"}
    assert write(exchange(), "gif", chosen).content == write(exchange(), "gif", chosen).content


def test_gpus_fill_up_in_a_gif():
    """Two cells share the 60 x 24 at the lower middle of a box, 8 above its end at y = 30.

    So their middles are 15 beside it, at y = 10. Chunk 1 is the right one, and new in a.
    """
    found = frames(exchange(), seconds="1", rate="4", cut="false")
    view = View(Stage.of(pair(), PLACES), DARK, width=320.0, filled=True, captioned=True)

    def near(frame, point, color):
        seen = on(view, found[frame][0], point)
        return sum(abs(a - b) for a, b in zip(seen, rgb(color), strict=True)) < 24

    for frame in (0, -1):
        assert near(frame, (-15.0, 10.0), OKABE_ITO[0])
        assert near(frame, (293.0, 10.0), OKABE_ITO[1])
    assert near(0, (15.0, 10.0), DARK.empty)
    assert near(0, (263.0, 10.0), DARK.empty)
    assert near(-1, (15.0, 10.0), OKABE_ITO[1])
    assert near(-1, (263.0, 10.0), OKABE_ITO[0])


def test_a_film_that_takes_hours_is_refused():
    chosen = {"width": "1920", "seconds": "60", "rate": "50"}
    with pytest.raises(FormatError, match="give less width, length or rate"):
        write(exchange(), "gif", chosen)


def test_a_film_needs_a_plan():
    with pytest.raises(FormatError, match="solve it first"):
        write(document(pair()), "gif", {})


def test_a_webm_without_the_extra_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)

    with pytest.raises(FormatError, match=r"pip install -e '\.\[video\]'"):
        write(exchange(), "webm", {"seconds": "1"})


def test_a_webm_has_the_frames_asked_for():
    """2 s at 5 frames a second are 10, the last of which begins after 1.8 s."""
    av = pytest.importorskip("av")
    content = write(exchange(), "webm", {"seconds": "2", "rate": "5", "width": "320"}).content

    with av.open(io.BytesIO(content)) as container:
        found = list(container.decode(video=0))
    assert len(found) == 10
    assert float(found[-1].time) == pytest.approx(1.8, abs=0.01)
    assert found[0].width == 320
