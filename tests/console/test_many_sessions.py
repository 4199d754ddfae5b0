"""More sessions than a page shows, and narrow windows."""

from contextlib import ExitStack

import pytest
from console_page import NODES
from pando_kv import Client
from prompts import admit_and_publish, prompt
from selenium.webdriver.common.keys import Keys

SESSIONS = 205
LISTED = 200
ROWS = "document.querySelectorAll('#sessions tr').length"
FIRST = "document.querySelector('#sessions tr button').innerText"


@pytest.fixture
def crowd(pandod):
    """Yields many clients, most of which hold nothing.

    The last one holds two locks, the one before it holds one, and rank 100 makes the
    most calls.
    """
    with ExitStack() as stack:
        clients = [
            stack.enter_context(Client(pandod.address, name=f"rank {rank}"))
            for rank in range(SESSIONS)
        ]
        admit_and_publish(clients[0], prompt(2))
        for _ in range(8):
            clients[100].free_pages(clients[100].allocate_pages(1))
        for client in (clients[-1], clients[-1], clients[-2]):
            stack.enter_context(client.lock(prompt(2)))
        yield clients


def test_who_holds_or_calls_most_comes_first_and_others_are_found(page, pandod, crowd):
    page.open(pandod.http)
    page.until(f"{ROWS} === {LISTED}")
    names = page.run(
        "[...document.querySelectorAll('#sessions tr button')].slice(0, 3)"
        ".map(button => button.innerText)"
    )
    assert names == [
        f"{SESSIONS} rank {SESSIONS - 1}",
        f"{SESSIONS - 1} rank {SESSIONS - 2}",
        "101 rank 100",
    ]
    assert page.text("#sessions-note") == "5 more sessions."

    page.type("#session-filter", "RANK 20")
    page.until(f"{ROWS} === 6")
    page.type("#session-filter", Keys.BACKSPACE * 7 + "203")
    # The rows are rank 203 and session 203.
    page.until(f"{ROWS} === 2")
    page.type("#session-filter", "x")
    page.until(
        "document.querySelector('#sessions-note').innerText ==="
        " 'No session is called so.'"
    )
    page.type("#session-filter", Keys.BACKSPACE * 4)
    page.until(f"{ROWS} === {LISTED}")


def test_one_key_leads_the_keyboard_past_all_sessions(page, pandod, crowd):
    page.open(pandod.http)
    page.until(f"{ROWS} === {LISTED}")
    page.run("document.querySelector('#icicle [tabindex=\"0\"]').focus()")
    page.press(Keys.TAB)
    skip = "document.getElementById('skip-sessions')"
    page.until(f"document.activeElement === {skip}")
    assert page.run(f"{skip}.getBoundingClientRect().left") > 0
    page.press(Keys.ENTER)
    page.press(Keys.TAB)
    page.until("document.activeElement.id === 'explain-tokens'")
    assert page.run("location.hash") == ""


@pytest.mark.parametrize("width", [400, 320])
def test_tables_need_no_sideways_scrolling_in_a_narrow_window(
    page, pandod, client, width
):
    admit_and_publish(client, prompt(2))
    page.open(pandod.http)
    page.viewport(width, 900)
    page.until(f"document.documentElement.clientWidth === {width}")
    page.until(f"{ROWS} === 1 && {NODES} === 1")
    scroll = "document.querySelector('#sessions').closest('.scroll')"
    # The charts adapt to the new width a moment after the window does.
    page.until(f"document.documentElement.scrollWidth <= {width}")
    page.until(f"{scroll}.scrollWidth === {scroll}.clientWidth")
    locks = "document.querySelector('#sessions td[data-label=Locks]')"
    assert page.run(f"getComputedStyle({locks}, '::before').content") == '"Locks"'
    unused = "document.querySelector('#sessions .blocks-only')"
    assert page.run(f"getComputedStyle({unused}).display") == "none"
    page.screenshot(f"narrow_{width}")
