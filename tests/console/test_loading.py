"""The console loads, with its styles, over a bad link and from a busy server."""

import socket
import time
from contextlib import ExitStack

import pytest
from metrics_page import get
from unsteady_link import unsteady_link

# A part of each kind, and one (api.js) that only another module asks for.
PARTS = ["theme.css", "parts.css", "d3.min.js", "main.js", "api.js"]
# The delay is longer than the two seconds for which civetweb usually waits.
LATE_SECONDS = 3
# Three browsers ask for this many parts at a time.
UNDER_WAY = 18
QUESTION = b'{"tokens":[1]}'


def await_looks(page) -> None:
    """Waits until a style from each style sheet is in effect."""
    for part, look, value in (
        ("body", "margin", "0px"),
        ("main", "display", "grid"),
        (".figure strong", "fontSize", "24px"),
    ):
        style = f"getComputedStyle(document.querySelector('{part}')).{look}"
        page.until(f"document.querySelector('{part}') && {style} === '{value}'")


@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_is_lost_is_asked_for_again(page, pandod, part):
    lost = f"/console/{part}"
    with unsteady_link(
        pandod.http, lambda path, time: path != lost or time > 2
    ) as link:
        page.open(link.address)
        await_looks(page)
        assert link.asked[lost] > 2
        page.leave()
    # Drops the errors about the lost part, and those that followed from it.
    page.errors()


def test_a_browser_that_connects_and_asks_late_is_answered(page, pandod):
    def delay(path: str, times: int) -> bool:
        if times == 1 and path.endswith(("theme.css", "main.js", "api/stats")):
            time.sleep(LATE_SECONDS)
        return True

    with unsteady_link(pandod.http, delay) as link:
        page.open(link.address)
        await_looks(page)
        assert link.asked["/console/"] == link.asked["/console/main.js"] == 1
        page.leave()
    assert page.errors() == []


def test_others_get_every_part_while_several_ask(pandod):
    """Requests under way, as of busy browsers, delay no other caller."""
    host, port = pandod.http.split(":")
    head = (
        f"POST /console/api/explain HTTP/1.1\r\nHost: {pandod.http}\r\n"
        f"Content-Length: {len(QUESTION)}\r\n\r\n"
    )
    with ExitStack() as stack:
        asking = [
            stack.enter_context(socket.create_connection((host, int(port)), timeout=60))
            for _ in range(UNDER_WAY)
        ]
        for connection in asking:
            connection.sendall(head.encode())
        for part in PARTS:
            assert get(pandod.http, f"/console/{part}")[0] == 200
        for connection in asking:
            connection.sendall(QUESTION)
            assert connection.recv(64).startswith(b"HTTP/1.1 200 ")
