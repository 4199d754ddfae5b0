"""The console shows no secrets, and can be turned off."""

import base64
import contextlib
import json
import re
import socket
import urllib.error
import urllib.request

import numpy as np
import pytest
from console_page import NODES
from credentials import folder_of_tokens, guarded, token_of
from metrics_page import free_address, get
from pando_kv import Client, Namespace
from pandod_process import PAGE_TOKENS
from process_memory import memory_of
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


def test_the_script_within_the_page_has_another_nonce_each_time(pandod):
    def nonces() -> set[str]:
        with urllib.request.urlopen(f"http://{pandod.http}/console/") as answer:
            policy = answer.headers["Content-Security-Policy"]
            page = answer.read().decode()
        found = re.findall(r"nonce-(\w+)'", policy) + re.findall('nonce="(.*?)"', page)
        assert len(found) == 2
        return set(found)

    (first,), (second,) = nonces(), nonces()
    assert first != second
    assert len(first) == 32


def test_the_console_can_be_turned_off(start_pandod):
    pandod = start_pandod(console="no")
    for path in ("/console", "/console/", "/console/api/stats"):
        assert get(pandod.http, path)[0] == 404
    assert get(pandod.http, "/healthz") == (200, "ok\n")


def explain(http: str, body: bytes | dict, **headers: str) -> tuple[int, dict | str]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(
        f"http://{http}/console/api/explain",
        data,
        {name.replace("_", "-"): value for name, value in headers.items()},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_an_explanation_tells_no_more_than_whole_pages_and_its_own_namespace(
    pandod, client
):
    prompt = np.concatenate([SECRET, SECRET + 100])
    admit_and_publish(client, prompt, namespace=Namespace("tenant", SALT))
    guess = prompt.copy()
    guess[PAGE_TOKENS + 5 :] = 1
    named = {"extra_key": "tenant", "cache_salt": SALT}
    for namespace in (named, {"extra_key": "tenant"}, {}):
        status, answer = explain(
            pandod.http, {"namespace": namespace, "tokens": guess.tolist()}
        )
        assert status == 200
        matched = PAGE_TOKENS if namespace == named else 0
        assert answer["matched_tokens"] == matched
        assert answer["diverged_at"] in (0, matched)
        assert answer["longer_in_namespaces"] == []


def test_where_there_are_credentials_the_console_asks_for_one():
    entries = """
- {name: r, role: reader, token_file: FOLDER/reader.token}
- {name: a, role: worker, token_file: FOLDER/a.token, namespaces: [{extra_key: a}]}
"""
    http = free_address()
    with folder_of_tokens() as folder, guarded(folder, entries, http=http):
        question = {"tokens": SECRET.tolist()}
        for headers in (
            {},
            {"Authorization": "Bearer nobody-has-this-token"},
            {"Authorization": f"Bearer {token_of('a')}"},
            {"Authorization": "Basic nonsense"},
        ):
            assert explain(http, question, **headers)[0] == 401
        for path in ("/console/", "/console/api/stats", "/console/main.js"):
            assert get(http, path)[0] == 401
        password = base64.b64encode(f"me:{token_of('reader')}".encode()).decode()
        for shown in (f"Bearer {token_of('reader')}", f"Basic {password}"):
            status, answer = explain(http, question, Authorization=shown)
            assert (status, answer["matched_tokens"]) == (200, 0)
        assert get(http, "/healthz") == (200, "ok\n")
        assert get(http, "/metrics")[0] == 200


def test_a_page_of_another_server_is_refused(pandod):
    question = {"tokens": [1]}
    for origin in ("http://elsewhere.example", "null", "https://elsewhere.example:80"):
        assert explain(pandod.http, question, Origin=origin)[0] == 403
    assert explain(pandod.http, question, Origin=f"http://{pandod.http}")[0] == 200


BODIES = {
    "nested arrays": b"[" * 12_000_000,
    "nested objects": b'{"namespace":' * 900_000,
    "arrays in the tokens": b'{"tokens":' + b"[" * 12_000_000,
    "too many tokens": b'{"tokens":[' + b"1," * 5_000_000 + b"1]}",
    "other fields": b"{" + b'"a":1,' * 2_000_000 + b'"b":2}',
}


@pytest.mark.parametrize("what", BODIES)
def test_a_body_that_is_no_question_takes_no_more_than_its_bytes(pandod, what):
    assert explain(pandod.http, {"tokens": [1]})[0] == 200
    before = memory_of(pandod.pid, "VmHWM")
    assert explain(pandod.http, BODIES[what])[0] == 400
    assert memory_of(pandod.pid, "VmHWM") < before + 4 * len(BODIES[what])


def test_slow_bodies_hold_up_neither_probes_nor_metrics(pandod):
    host, port = pandod.http.split(":")
    head = (
        f"POST /console/api/explain HTTP/1.1\r\nHost: {pandod.http}\r\n"
        "Content-Length: 1000000\r\n\r\n{"
    )
    with contextlib.ExitStack() as stack:
        slow = []
        for _ in range(100):
            slow.append(socket.create_connection((host, int(port)), timeout=60))
            stack.enter_context(slow[-1])
            slow[-1].sendall(head.encode())
        # pandod rejects most of them at once; the others send a byte at a time.
        for path in ("/healthz", "/readyz", "/metrics"):
            for _ in range(5):
                assert get(pandod.http, path)[0] == 200
                for connection in slow:
                    with contextlib.suppress(OSError):
                        connection.send(b" ")
