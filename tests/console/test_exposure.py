"""What the console does not show, and that it can be turned off."""

import numpy as np
from console_page import NODES
from metrics_page import get
from pando_kv import Client, Namespace
from pandod_process import PAGE_TOKENS
from prompts import admit_and_publish

SECRET = np.arange(3_999_999_000, 3_999_999_000 + PAGE_TOKENS, dtype=np.uint32)
SALT = "the salt of a tenant"


def test_tokens_and_salts_are_in_no_answer(page, pandod, client):
    admit_and_publish(client, SECRET, namespace=Namespace("tenant", SALT))
    page.open(pandod.http)
    page.until(f"{NODES} === 1")
    node = page.blocks()[0]
    page.click("#icicle g.node")
    page.until("document.querySelector('#details dl')")
    answers = [page.run("document.documentElement.outerHTML")]
    for what in (
        "stats",
        "tree",
        f"branch?name={node}",
        "sessions",
        "locks?session=1",
        "search?text=tenant",
    ):
        status, answer = get(pandod.http, f"/console/api/{what}")
        assert status == 200
        answers.append(answer)
    for answer in answers:
        assert "3999999" not in answer
        assert SALT not in answer
    assert get(pandod.http, f"/console/api/tokens?name={node}")[0] == 404


def test_tokens_are_shown_where_that_is_turned_on(page, start_pandod):
    pandod = start_pandod(console_show_tokens="yes")
    with Client(pandod.address) as client:
        admit_and_publish(client, SECRET)
        page.open(pandod.http)
        page.click("#icicle g.node")
        page.click("#details .actions button:not(.zoom)")
        page.until("document.querySelector('#details .tokens')")
        assert page.text("#details .tokens") == " ".join(map(str, SECRET))


def test_the_console_can_be_turned_off(start_pandod):
    pandod = start_pandod(console="no")
    for path in ("/console", "/console/", "/console/api/stats"):
        assert get(pandod.http, path)[0] == 404
    assert get(pandod.http, "/healthz") == (200, "ok\n")
