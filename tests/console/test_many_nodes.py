"""A tree that is far too large to be drawn whole."""

import time

import pytest
from many_nodes import publish_chats
from metrics_page import get
from pando_kv import Client

CHATS = 100_000


@pytest.fixture
def crowded(start_pandod):
    """Yields a pandod with over 100,000 nodes."""
    pandod = start_pandod(pool_pages=6 * CHATS + 2)
    with Client(pandod.address, name="the crowd", timeout=60) as client:
        publish_chats(client, pandod.address, CHATS, seed=1)
        assert client.stats().nodes > CHATS
        yield pandod


def test_it_stays_readable(page, crowded):
    page.open(crowded.http)
    page.until("document.querySelectorAll('#icicle g.here.node').length > 50")
    assert page.run("document.querySelectorAll('#icicle rect').length") < 1500
    narrowest = page.run(
        "Math.min(...[...document.querySelectorAll('#icicle g.here.node rect')]"
        ".map(rect => rect.__data__.width))"
    )
    assert narrowest >= 2
    page.screenshot("many_nodes")

    merged = page.blocks("merged")[0]
    page.click(f"#icicle g[data-name='{merged}']")
    page.until("document.querySelector('#details tbody tr')")
    page.click("#details .zoom")
    page.until("document.querySelectorAll('#path button').length > 1")
    page.until("document.querySelector('#icicle g.here.node text').textContent")
    page.screenshot("many_nodes_zoomed")

    page.leave()
    times = []
    # A hundred requests take longer than a copy of the tree is kept.
    for _ in range(100):
        begin = time.perf_counter()
        status, answer = get(crowded.http, "/console/api/tree?limit=500")
        times.append(time.perf_counter() - begin)
        assert status == 200
        assert len(answer) < 300_000
    print(
        f"\na picture of {CHATS} nodes: {min(times) * 1e3:.1f} ms, "
        f"{max(times) * 1e3:.1f} ms with a new copy of the tree; {len(answer)} bytes"
    )
