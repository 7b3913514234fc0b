"""A drawing goes to the server once; questions refer to it, also after the server has lost it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from designer.server.guard import ASK, STORE
from designer.session import MOST_STORED
from tests.browser.conftest import settle

pytestmark = pytest.mark.browser

WHOLE = '"devices":[{'
"""What the JSON of a topology has and that of a selection has not."""

LOSE = f"""async (many) => {{
  for (let i = 0; i < many; i++) {{
    const value = {{ name: `other ${{i}}`, devices: [], links: [] }};
    await fetch("{STORE.strip("/")}", {{
      method: "POST", headers: {{ "Content-Type": "application/json" }},
      body: JSON.stringify({{ kind: "topology", fingerprint: `other${{i}}`, value }}),
    }});
  }}
}}"""
"""Store other drawings until there is no room for the one that is shown."""


@pytest.fixture
def posted(page):
    """Return what the page posts, as (path, body)."""
    found = []
    page.on(
        "request",
        lambda asked: (
            found.append((asked.url, asked.post_data or "")) if asked.method == "POST" else None
        ),
    )
    return found


def sends(posted):
    """Return (paths that a whole drawing went to, how many questions refer to one)."""
    whole = [url.rsplit("/", 1)[1] for url, body in posted if WHOLE in body]
    return whole, sum('"$topology"' in body for _, body in posted)


def test_one_edit_sends_the_drawing_once(page, server, drive, posted):
    """About ten callbacks take the drawing: each question has a reference of 32 digits instead."""
    page.goto(server[0])
    driver = drive(page)
    best = page.locator("#optimum-card")
    expect(best).to_contain_text("upper limit of algbw")
    settle(page)
    posted.clear()
    driver.do("add", kind="gpu")
    expect(best).to_contain_text("once all GPUs are linked")
    expect(page.locator("#trouble")).to_contain_text("not joined to")
    settle(page)
    whole, references = sends(posted)
    assert whole == [STORE.strip("/")]
    assert references > 4
    assert all(ASK in url or STORE in url for url, _ in posted)


def test_a_move_sends_no_topology(page, server, drive, posted):
    """The first edit alone does: the canvas writes a device's fields in an order of its own."""
    page.goto(server[0])
    driver = drive(page)
    expect(page.locator("#optimum-card")).to_contain_text("upper limit of algbw")
    x, y = driver.at(driver.names[0])
    driver.drag((x, y), (x + 40, y + 30))
    settle(page)
    posted.clear()
    driver.drag((x + 40, y + 30), (x, y))
    settle(page)
    assert sends(posted)[0] == []


def test_a_drawing_that_the_server_has_lost_is_stored_again(page, server, drive):
    page.goto(server[0])
    driver = drive(page)
    expect(page.locator("#optimum-card")).to_contain_text("upper limit of algbw")
    settle(page)
    page.evaluate(LOSE, MOST_STORED)
    with page.expect_request(f"**{STORE}") as again:
        driver.click(driver.names[0])
    assert WHOLE in again.value.post_data
    name = page.locator("#inspector").get_by_label(re.compile("Name")).first
    expect(name).to_have_value(driver.names[0])
    expect(page.get_by_text("The server did not take this")).to_have_count(0)


def test_components_look_at_the_store_once_and_only_where_it_says_something(page, server, drive):
    """Neither which callbacks wait nor each of many small changes makes all of them look anew."""
    page.goto(server[0])
    drive(page)
    settle(page)

    looks = page.evaluate("""async () => {
        const counts = [];
        let looks = 0;
        const leave = store.subscribe(() => { looks += 1; });
        const count = async (change) => {
            looks = 0;
            change();
            counts.push(looks);
            await null; // what is put off to the end of the turn has come
            counts.push(looks);
        };
        await count(() => store.dispatch({ type: "nothing of Dash" }));
        await count(() => {
            const itempath = store.getState().paths.strs.counts;
            for (let time = 0; time < 5; time++) {
                store.dispatch({ type: "RESET_COMPONENT_STATE", payload: { itempath } });
            }
        });
        await count(() => dash_clientside.set_props("counts", { title: "as it was" }));
        leave();
        return counts;
    }""")

    assert looks[:4] == [0, 0, 0, 1]
    assert looks[4] >= 1
