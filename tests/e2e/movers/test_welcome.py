"""The pando-movers that a pandod welcomes, and those it refuses."""

import os
import socket

import pytest
from eventually import eventually
from moved import HOST
from mover_process import MoverProcess
from pandod_process import refused_start
from tiered import PROMPT

pytestmark = pytest.mark.parametrize("without_mover", [HOST], indirect=True)


def second(tmp_path, device: str = "host") -> MoverProcess:
    return MoverProcess(tmp_path / "mover.sock", tmp_path / "second.log", device)


def test_a_second_one_waits_until_the_first_has_ended(moved, tmp_path):
    other = second(tmp_path)
    other.start()
    eventually(lambda: "host has a pando-mover already" in other.log())
    moved.mover.kill()
    eventually(lambda: other.welcomes() == 1)
    eventually(moved.has_mover)
    moved.store(PROMPT, seed=1)
    assert moved.read()[0] == PROMPT.size
    other.close()


def test_nobody_else_may_connect(without_mover, tmp_path):
    mode = os.stat(tmp_path / "mover.sock").st_mode
    assert mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "words",
    [b"", b"\0" * 136, os.urandom(136), os.urandom(100_000)],
    ids=["silence", "zeros", "noise", "much noise"],
)
def test_a_stranger_keeps_no_mover_from_its_work(without_mover, tmp_path, words):
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.connect(str(tmp_path / "mover.sock"))
        stranger.sendall(words[:4096])
        without_mover.start_mover()
        without_mover.store(PROMPT, seed=1)
        assert without_mover.read()[0] == PROMPT.size


def test_it_waits_for_a_pandod(moved, tmp_path):
    early = MoverProcess(tmp_path / "other.sock", tmp_path / "second.log")
    early.start()
    eventually(lambda: "no pandod at" in early.log())
    assert early.stop() == 0


def test_without_a_tier_there_is_nothing_to_move(tmp_path, moved):
    error = refused_start(tmp_path, f"--mover-socket={tmp_path}/m.sock")
    assert "which needs a tier to copy to" in error
