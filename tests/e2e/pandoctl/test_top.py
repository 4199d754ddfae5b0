"""`pandoctl top` shows blocks, tiers and movers on a terminal of 80 by 24."""

import re
from contextlib import ExitStack

import numpy as np
import pytest
from moved import HOST, Moved
from pando_kv import Client
from pandoctl import Pandoctl
from pandod_process import PAGE_TOKENS

COLOR = re.compile(r"\x1b\[[0-9;]*m")
CLEAR = "\x1b[H\x1b[J"
OF_THIS_SIZE = ["sh", "-c", 'stty rows 24 cols 80; exec "$@"', "sh"]
IDLE = 20


@pytest.fixture
def busy(start_pandod, tmp_path):
    """Yields a pool with a tier without a mover, block memory, and many sessions."""
    moved = Moved(start_pandod, tmp_path, **HOST, memory="16MiB", block_extent="1MiB")
    with ExitStack() as stack:
        for rank in range(IDLE + 1):
            name = f"rank {rank}"
            client = stack.enter_context(Client(moved.pandod.address, name=name))
        tokens = np.arange(2 * PAGE_TOKENS, dtype=np.uint32)
        client.insert(tokens, client.allocate_pages(2))
        stack.enter_context(client.lock(tokens))
        yield moved.pandod


def test_all_of_it_is_on_a_small_screen(busy):
    ctl = Pandoctl(busy.address, run_by=OF_THIS_SIZE)
    screen = ctl.on_terminal("top", "-i", 0.01, "-n", 1).out.split(CLEAR)[1]
    screen = COLOR.sub("", screen)
    lines = screen.rstrip("\r\n").splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    for begin in ("blocks: ", "tier host: ", "movers: ", "NAMESPACE ", "SESSION "):
        assert any(line.startswith(begin) for line in lines), begin
    assert "blocks: 16.0 MiB free of 16.0 MiB, 0 kinds" in screen
    assert "movers: host is missing" in screen
    assert screen.count("SESSION  CLIENT") == 2, "sessions, and locks"


def test_the_session_that_holds_most_is_first_although_it_is_the_newest(busy):
    answer = Pandoctl(busy.address)("top", "-i", 0.01, "-o", "json").json()
    listed = answer["sessions"]["sessions"]
    assert listed[0]["client_name"] == f"rank {IDLE}"
    assert len(listed) == 8
    assert answer["sessions"]["total"] == IDLE + 1, "pandod's own is none of them"
    (tier,) = answer["stats"]["tiers"]
    assert tier["tier"] == "TIER_HOST"
    assert int(tier["capacity_pages"]) > 0
    assert answer["stats"]["movers"] == [{"device": "host", "is_present": False}]


def test_only_sessions_whose_names_are_asked_for_are_shown(busy):
    answer = Pandoctl(busy.address)("top", "--sessions", "k 1", "-o", "json").json()
    listed = {each["client_name"] for each in answer["sessions"]["sessions"]}
    assert len(listed) == 8
    asked = {f"rank {n}" for n in range(IDLE + 1) if "k 1" in f"rank {n}"}
    assert listed <= asked
    assert answer["sessions"]["total"] == len(asked)


def test_pandods_own_session_is_said_to_be(busy):
    text = Pandoctl(busy.address)("sessions").out
    (own,) = [line for line in text.splitlines() if "pandod-tiers" in line]
    assert "internal" in own
