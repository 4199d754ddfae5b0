"""A user's steps on the console of a real pandod."""

import os
import re
import signal

import numpy as np
from console_page import NODES, ConsolePage
from pando_kv import Client, KvLayout, Namespace
from pandod_process import OPEN, PAGE_TOKENS
from prompts import admit_and_publish, prompt
from worker_process import WorkerProcess


def test_the_page_loads_without_complaint_and_asks_nobody_else(page, pandod):
    page.open(pandod.http)
    page.until("document.querySelector('#figures strong').innerText")
    assert page.text("#tree-empty") == "Nothing is cached yet."
    assert page.requested_hosts() == {pandod.http}
    assert page.errors() == []


def test_the_tree_grows_splits_and_shrinks_without_reloading(page, pandod, client):
    page.open(pandod.http)
    page.run("window.opened = true")
    admit_and_publish(client, prompt(8))
    page.until(f"{NODES} === 1")
    (whole,) = page.blocks()
    other_turn = prompt(8)
    other_turn[5 * PAGE_TOKENS :] += 1_000_000
    admit_and_publish(client, other_turn)
    page.until(f"{NODES} === 3")
    assert whole in page.blocks()
    client.evict(3)
    page.until(f"{NODES} === 2")
    client.evict(100)
    page.until(f"{NODES} === 0")
    assert page.run("window.opened")


def test_a_real_load_is_seen_live(page, load):
    page.open(load.http)
    page.until(f"{NODES} > 20")
    page.until("document.querySelector('#sessions').rows.length === 2")
    page.until("document.querySelector('#pages-evictable b').dataset.pages > 400")
    for chart in ("hit-rate", "evictions", "rpc-time", "calls"):
        page.until(
            f"Chart.getChart('{chart}').data.datasets.some("
            "line => line.data.filter(point => point.y > 0).length >= 3)"
        )
    page.screenshot("load")


def test_pages_by_state_always_sum_to_the_capacity(page, load):
    page.open(load.http)
    shown = (
        "[...document.querySelectorAll('#page-legend b')]"
        ".map(number => Number(number.dataset.pages))"
    )
    pages: list[int] = []
    for _ in range(4):
        pages = page.until(f"({shown} + '' !== {pages} + '') && {shown}")
        assert sum(pages) == 600
    assert page.run("document.getElementById('page-bar').dataset.capacity") == "600"


def details(page: ConsolePage) -> dict[str, str]:
    terms = page.run(
        "[...document.querySelectorAll('#details dt')]"
        ".map(term => [term.innerText, term.nextSibling.innerText])"
    )
    return dict(terms)


def test_a_click_on_a_node_shows_what_it_is(page, pandod, client):
    admit_and_publish(client, prompt(3))
    with client.lock(prompt(3)):
        page.open(pandod.http)
        page.until(f"{NODES} === 1")
        page.click("#icicle g.node")
        page.until("document.querySelector('#details dl')")
        shown = details(page)
        assert shown["Tokens"] == str(3 * PAGE_TOKENS)
        assert (shown["Pages"], shown["Locks, and locked branches"]) == ("3", "1")
        assert shown["Hits"] == "1"
        assert shown["Cached for"].endswith(" s")
        assert shown["Namespace"] == "1: default"
    page.until("document.querySelector('#details dd:nth-of-type(4)').innerText === '0'")
    page.click("#details .title-row button")
    assert page.run("document.getElementById('details').hidden")


def test_a_node_that_is_evicted_while_it_is_shown_is_said_to_be_gone(
    page, pandod, client
):
    admit_and_publish(client, prompt(3))
    page.open(pandod.http)
    page.click("#icicle g.node")
    page.until("document.querySelector('#details dl')")
    client.evict(100)
    page.until("document.querySelector('#details .gone')")
    assert all("404" in error for error in page.errors())


def test_one_can_zoom_in_and_out(page, pandod, client):
    for name in ("a", "b"):
        for turn in range(3):
            tokens = np.append(prompt(2), prompt(1, 1000 * (turn + 1)))
            admit_and_publish(client, tokens, namespace=Namespace(name))
    page.open(pandod.http)
    page.until(f"{NODES} === 8")
    first = page.blocks()[0]
    page.click(f"#icicle g[data-name={first}]")
    page.click(f"#icicle g[data-name={first}]")
    page.until(f"{NODES} === 4")
    assert page.run("location.hash") == f"#{first}"
    assert re.fullmatch(r"Everything\s*›\s*a\s*›\s*Node \d+", page.text("#path"))
    page.click(f"#icicle g[data-name={first}]")
    page.until("document.querySelectorAll('#icicle g.here.frame').length === 1")
    page.click("#path button")
    page.until(f"{NODES} === 8")


def test_a_link_to_a_subtree_that_is_gone_leads_to_everything(page, pandod, client):
    admit_and_publish(client, prompt(1))
    page.open(pandod.http, "#node-987654")
    page.until(f"{NODES} === 1")
    assert page.text("#path") == "Everything"
    assert all("404" in error for error in page.errors())


def test_nodes_namespaces_and_sessions_are_found(page, pandod, client):
    admit_and_publish(client, prompt(1), namespace=Namespace("lora-legal"))
    admit_and_publish(client, prompt(2))
    page.open(pandod.http)
    page.until(f"{NODES} === 2")
    node = page.blocks()[0]

    page.type("#search-text", "legal")
    page.until("document.querySelector('#found button')")
    assert page.text("#found") == "Namespace 1: lora-legal"
    page.click("#found button")
    page.until(f"{NODES} === 1")
    assert "lora-legal" in page.text("#details")

    page.type("#search-text", node)
    page.click("#found button")
    page.until(f"document.getElementById('details').dataset.name === '{node}'")

    page.type("#search-text", "worker")
    page.click("#found button")
    page.until("document.querySelector('#sessions tr.chosen')")

    page.type("#search-text", "unheard of")
    page.until("document.querySelector('#found .note')")


def test_what_a_session_holds_is_shown_until_it_is_killed(page, pandod, client):
    shared = prompt(2)
    admit_and_publish(client, np.append(shared, prompt(1, 5000)))
    with WorkerProcess(pandod.address) as worker:
        worker.do("attach", "lock", "reserve")
        page.open(pandod.http)
        row = "document.querySelector('#sessions tr[data-session=\"2\"]')"
        page.until(row)
        assert "attached" in page.run(f"{row}.innerText")
        age = f"{row}.querySelector('[data-label=Age]').innerText"
        assert page.run(age).endswith(" s")
        page.click('#sessions tr[data-session="2"]')
        page.until("document.querySelector('#icicle g.node.held')")
        assert page.run("document.querySelectorAll('#icicle g.node:not(.held)').length")
        assert "holds 1 lock" in page.text("#session-locks")
        worker.kill()
        page.until(f"{row}.classList.contains('ended')")
        assert page.run(f"{row}.cells[2].innerText") == "–"
        page.screenshot("session_killed")
    page.until("document.querySelector('#pages-protected b').dataset.pages === '0'")
    page.until(f"!{row}")
    assert "1 lost" in page.text("#figures")


def test_a_miss_is_explained(page, start_pandod):
    # Without this option an explanation covers only whole pages and its own namespace.
    pandod = start_pandod(console_show_tokens="yes")
    with Client(pandod.address) as client:
        admit_and_publish(client, prompt(3), namespace=Namespace("tenant"))
    page.open(pandod.http)
    miss = prompt(2).tolist()
    miss[PAGE_TOKENS + 3] = 999_999
    page.type("#explain-tokens", str(miss))
    page.click("#explain button")
    page.until("document.querySelector('#explanation b')")
    answer = page.text("#explanation")
    assert f"0 of {2 * PAGE_TOKENS} tokens are found" in answer
    assert "More of it is cached in namespace 1." in answer

    page.click("#has-extra-key")
    page.type("#extra-key", "tenant")
    page.click("#explain button")
    page.until(
        "document.querySelector('#explanation').innerText.includes('other tokens')"
    )
    assert f"from token {PAGE_TOKENS + 3} on" in page.text("#explanation")

    page.type("#explain-tokens", " nonsense")
    page.click("#explain button")
    page.until("document.querySelector('#explanation .error')")
    assert '"nonsense" is no token id' in page.text("#explanation")


def test_what_the_policy_hits_above_lru_is_said_while_it_is_learnt(page, start_pandod):
    pandod = start_pandod(eviction_policy="reuse")
    page.open(pandod.http)
    page.until("document.querySelector('#server').innerText.endsWith('evicts reuse')")
    with Client(pandod.address) as client:
        for _ in range(2):
            admit_and_publish(client, prompt(3))
    page.until(
        "document.querySelector('#server').innerText"
        ".includes('evicts reuse: +0.0 points over LRU')"
    )


def test_it_says_so_when_pandod_is_gone_and_goes_on_when_it_is_back(page, pandod):
    page.open(pandod.http)
    pandod.kill()
    page.until("document.querySelector('#live[data-state=lost]')")
    assert re.search(r"what is shown is \S+ s old", page.text("#live"))
    assert page.run("getComputedStyle(document.querySelector('main')).filter") != "none"
    pandod.start()
    page.until("document.querySelector('#live[data-state=live]')")
    assert page.run("getComputedStyle(document.querySelector('main')).filter") == "none"
    with Client(pandod.address) as client:
        admit_and_publish(client, prompt(1))
        page.until(f"{NODES} === 1")
    assert all("ERR_" in error for error in page.errors())


def test_a_pandod_that_hangs_is_not_shown_as_live(page, pandod):
    page.open(pandod.http)
    os.kill(pandod.pid, signal.SIGSTOP)
    try:
        page.until("document.querySelector('#live[data-state=lost]')")
        assert "it does not answer" in page.text("#live")
    finally:
        os.kill(pandod.pid, signal.SIGCONT)
    page.until("document.querySelector('#live[data-state=live]')")


def test_draining_is_said(page, pandod, client):
    page.open(pandod.http)
    client.drain()
    page.until("document.querySelector('#live[data-state=draining]')")
    assert "draining" in page.text("#live")


def test_an_open_pool_is_said_until_its_first_engine_has_come(page, start_pandod):
    pandod = start_pandod(**OPEN, pool_bytes=1 << 20)
    page.open(pandod.http)
    page.until(
        "document.querySelector('#server').textContent"
        ".startsWith('open pool, waits for the first engine')"
    )
    layout = KvLayout.make(
        capacity_pages=0,
        layers=1,
        heads=2,
        head_size=16,
        dtype="float16",
        page_tokens=8,
    )
    with Client(pandod.address) as client:
        client.attach_pool(expected_layout=layout, model="m").close()
    page.until(
        "document.querySelector('#server').textContent"
        ".startsWith('m · 1 layer of 2 heads of 16 float16, 8 tokens a page')"
    )
    # These errors are from the moment in which pandod started anew.
    assert all("ERR_" in error for error in page.errors())


def refreshes(page: ConsolePage, times: int) -> None:
    """Waits until the page has asked `times` more times and has shown the answers."""
    count = "performance.getEntriesByType('resource').filter(entry =>"
    count += " entry.name.endsWith('/api/stats')).length"
    before = page.run(count)
    page.until(f"{count} > {before + times}")


def test_what_one_can_click_outlasts_a_refresh(page, pandod, client):
    admit_and_publish(client, prompt(3))
    page.open(pandod.http)
    page.until(f"{NODES} === 1")
    page.click("#icicle g.frame")
    page.until("document.querySelector('#details tbody tr')")
    page.click("#sessions tr")
    page.until("document.querySelector('#session-locks p')")
    things = (
        "['#sessions tr', '#sessions button', '#details .zoom', '#details tbody tr',"
        " '#session-locks p'].map(name => document.querySelector(name))"
    )
    page.run(f"window.things = {things}")
    refreshes(page, 3)
    assert page.run(f"{things}.map((thing, i) => thing === window.things[i])") == (
        [True] * 5
    )


def press(page: ConsolePage, key: str) -> None:
    page.run(
        "document.activeElement.dispatchEvent("
        f"new KeyboardEvent('keydown', {{key: '{key}', bubbles: true}}))"
    )


def test_the_tree_and_the_sessions_are_reached_by_keyboard(page, pandod, client):
    admit_and_publish(client, prompt(8))
    other = prompt(8)
    other[5 * PAGE_TOKENS :] += 1_000_000
    admit_and_publish(client, other)
    page.open(pandod.http)
    page.until(f"{NODES} === 3")
    focused = "document.activeElement.dataset.name"
    assert page.run("document.querySelectorAll('#icicle [tabindex=\"0\"]').length") == 1
    page.run("document.querySelector('#icicle [tabindex=\"0\"]').focus()")
    steps = []
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight", "ArrowUp"):
        press(page, key)
        steps.append(page.run(focused))
    namespace, parent, first, second, back = steps
    assert namespace.startswith("namespace-")
    assert {parent, first, second} == set(page.blocks())
    assert back == parent
    refreshes(page, 2)
    assert page.run(focused) == parent
    press(page, "Enter")
    page.until(f"document.getElementById('details').dataset.name === '{parent}'")
    page.run("document.querySelector('#sessions button').focus()")
    page.run("document.activeElement.click()")
    page.until("document.querySelector('#sessions tr.chosen')")


def test_the_box_of_the_tree_fits_it_and_does_not_shrink_while_it_is_shown(
    page, pandod, client
):
    page.open(pandod.http)
    admit_and_publish(client, prompt(1))
    page.until(f"{NODES} === 1")
    box = "document.getElementById('icicle')"
    high = f"{box}.clientHeight"
    unused = f"{high} - {box}.querySelector('svg').clientHeight"
    # The rows are "everything", the namespace and the node.
    page.until(f"{unused} === 0 && {high} === 75")
    for pages in range(2, 8):
        tokens = prompt(pages)
        tokens[-PAGE_TOKENS:] += 1_000_000 * pages
        admit_and_publish(client, tokens)
    page.until(f"{unused} === 0 && {high} > 150")
    page.screenshot("deep")
    before = page.run(high)
    client.evict(100)
    page.until(f"{NODES} === 0")
    assert page.run(high) == before
    for pages in range(8, 40):
        tokens = prompt(pages)
        tokens[-PAGE_TOKENS:] += 1_000_000 * pages
        admit_and_publish(client, tokens)
    page.until(f"{NODES} > 10")
    assert page.run(high) <= 520


def test_labels_stay_within_their_blocks_while_these_move(page, load):
    page.open(load.http)
    page.until(f"{NODES} > 20")
    page.run(
        """(() => {
          window.looks = 0;
          window.overflowing = new Set();
          const look = () => {
            ++window.looks;
            for (const group of document.querySelectorAll('#icicle g.here')) {
              const text = group.querySelector('text');
              const width = Number(group.querySelector('rect').getAttribute('width'));
              if (text.textContent && text.getBBox().width > width)
                window.overflowing.add(`${text.textContent} in ${width}`);
            }
            requestAnimationFrame(look);
          };
          look();
        })()"""
    )
    refreshes(page, 5)
    assert page.run("window.looks") > 10
    assert page.run("[...window.overflowing]") == []


def test_ticks_are_at_round_times_however_old_the_page_is(page, pandod):
    page.open(pandod.http)
    for age, ticks in (
        (20, [-60, -40, -20, 0]),
        (75, [-120, -90, -60, -30, 0]),
        (290, [-300, -240, -180, -120, -60, 0]),
    ):
        shown = page.run(
            "import('./timelines.js').then(({showTimelines}) => {"
            f" showTimelines([{{time: 0, evicted: {{}}}}], {age});"
            " return Chart.getChart('calls').scales.x.ticks.map(tick => tick.value)"
            "})"
        )
        assert shown == ticks


def test_the_figures_fill_their_rows(page, pandod):
    page.open(pandod.http)
    for width in (1440, 1000, 800, 390):
        page.viewport(width, 900)
        page.until(f"document.documentElement.clientWidth === {width}")
        tops = page.run(
            "[...document.querySelectorAll('#figures > *')]"
            ".map(tile => tile.getBoundingClientRect().top)"
        )
        assert len({tops.count(top) for top in tops}) == 1, width
