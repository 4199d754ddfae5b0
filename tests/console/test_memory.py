"""The console shows blocks, tiers and movers."""

from contextlib import closing

from blocks import BLOCKS_ONLY, MIB, keys, of, spec, store
from metrics_page import get
from moved import HOST, Moved
from pando_kv import Client, Namespace
from pandod_process import PAGE_TOKENS
from tiered import PROMPT

TABLE = (
    "[...document.querySelectorAll('#{}')].map(row =>"
    " [...row.cells].map(cell => cell.innerText))"
)


def test_kinds_of_blocks_are_shown_with_their_bytes_hits_and_extents(
    page, start_pandod
):
    pandod = start_pandod(**BLOCKS_ONLY)
    with Client(pandod.address) as client:
        memory = client.attach_memory()
        small, large = client.open_kinds(
            [
                spec("small", 64 << 10),
                spec("large", 512 << 10, namespace=Namespace("tenant", "a secret")),
            ]
        )
        store(client, memory, 1, small, keys(2))
        store(client, memory, 2, large, keys(4, prompt=1))
        client.lookup_blocks([of(large, keys(4, prompt=1) + keys(1, prompt=2))])
        page.open(pandod.http)
        page.until("document.querySelectorAll('#kinds tr').length === 2")
        assert page.run(TABLE.format("kinds tr")) == [
            ["kind large", "2.0 MiB", "2", "4", "0", "4, 80.0 %", "0"],
            ["kind small", "1.0 MiB", "1", "2", "0", "–", "0"],
        ]
        assert "13 MiB of 16 MiB free" in page.text("#kinds-note").replace(".0 ", " ")
        assert "free 13" in page.text("#block-legend")
        _, answer = get(pandod.http, "/console/api/stats")
        assert "a secret" not in answer
        client.acquire_blocks(1, [of(large, keys(3, prompt=1))])
        page.until("document.querySelector('#kinds tr').cells[4].innerText === '3'")
        row = "document.querySelector('#sessions tr')"
        page.until(f"{row}.cells[5].innerText === '3'")
        assert page.run(f"getComputedStyle({row}.cells[5]).display") == "table-cell"
        page.screenshot("blocks")
    assert 16 * MIB == BLOCKS_ONLY["memory"]


def test_without_blocks_and_tiers_nothing_is_said_of_them(page, pandod):
    page.open(pandod.http)
    for part in ("blocks", "tiers"):
        assert page.run(f"document.getElementById('{part}').hidden")


def test_tiers_and_the_movers_that_copy_for_them_are_shown(
    page, start_pandod, tmp_path
):
    moved = Moved(start_pandod, tmp_path, **HOST)
    with closing(moved.mover):
        page.open(moved.http)
        page.until("!document.getElementById('tiers').hidden")
        assert page.text("#movers") == "pando-mover of host: missing"
        moved.start_mover()
        page.until("document.querySelector('#movers b').innerText === 'copies'")
        moved.cache(PROMPT, seed=1)
        page.until("document.querySelector('#tier-rows').innerText.includes('12 (')")
        (row,) = page.run(TABLE.format("tier-rows tr"))
        assert row[0] == "host"
        assert row[2].startswith("12 (")
        assert row[-1] == "works"


def test_pandods_own_session_is_no_worker(page, start_pandod, tmp_path):
    pandod = start_pandod(
        tier_host_bytes="1MiB", tier_min_load_tokens=PAGE_TOKENS, model="a-model"
    )
    page.open(pandod.http)
    page.until("document.querySelector('#sessions tr')")
    assert page.run(TABLE.format("sessions tr"))[0][1] == "internal"
    assert page.text("#sessions-note") == "No worker is connected."
    figure = "document.querySelector('#figures .figure:nth-child(4) strong').innerText"
    assert page.run(figure) == "0"
    with Client(pandod.address):
        page.until(f"{figure} === '1'")
        page.until("document.querySelector('#sessions-note').hidden")
