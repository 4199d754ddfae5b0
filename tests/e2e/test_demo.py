"""The whole demo on short texts: pandod, two workers and the reference."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from eventually import eventually
from prepared_process import after

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "examples/demo/run.py"
SHOW = ROOT / "examples/demo/show.py"
# The demo takes interrupts as on a terminal, even if the tests run in the background.
TAKE_INTERRUPTS = "import signal; signal.signal(signal.SIGINT, signal.SIG_DFL)"
PATIENCE_SECONDS = 120
# Three processes import torch, while the tests of another engine run.
TORCH_PATIENCE_SECONDS = 280


@pytest.fixture
def pandod() -> Path:
    given = os.environ.get("PANDOD")
    path = Path(given) if given else ROOT / "build/dev/bin/pandod"
    if not path.exists():
        if given:
            pytest.fail(f"PANDOD is {path}, which does not exist")
        pytest.skip(f"{path} is not built")
    return path


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yields a folder with a short path: a socket's path has 107 bytes at most."""
    with tempfile.TemporaryDirectory(prefix="demo-") as path:
        yield Path(path)


@pytest.fixture
def short_texts(tmp_path: Path) -> Path:
    """Returns a folder with the shipped texts, cut to some hundred bytes each."""
    folder = tmp_path / "data"
    folder.mkdir()
    for source in (ROOT / "examples/data").iterdir():
        text = source.read_text()
        if source.name in ("system.txt", "document.txt"):
            text = text[:500]
        (folder / source.name).write_text(text)
    return folder


def start_demo(
    pandod: Path, data: Path, folder: Path, *options: str
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        after(
            TAKE_INTERRUPTS,
            *(sys.executable, DEMO, "--pandod", pandod, "--data", data, *options),
        ),
        env=os.environ | {"TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [
        int(child)
        for task in tasks
        for child in (task / "children").read_text().split()
    ]


def test_demo_verifies_every_bit_and_shares_between_the_workers(
    pandod, short_texts, folder
):
    demo = start_demo(pandod, short_texts, folder)
    output, errors = demo.communicate(timeout=PATIENCE_SECONDS)
    assert demo.returncode == 0, output + errors
    assert "bit-equal" in output
    shared = re.search(r"([\d,]+) tokens read\s+from pages that the other", output)
    assert shared, output
    assert int(shared[1].replace(",", "")) > 0
    # A request without a match has nothing to be faster by, so its cell is "-".
    rows = re.findall(r"^[AB] +.*?([\d,]+) +\d+% .* (\S+)$", output, re.MULTILINE)
    assert len(rows) == 9
    assert {matched == "0" for matched, faster in rows if faster == "-"} == {True}
    assert {matched == "0" for matched, faster in rows if faster != "-"} == {False}


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_demo_verifies_every_bit_of_torch_in_bfloat16(
    pandod, short_texts, folder, device
):
    torch = pytest.importorskip("torch")
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("torch finds no GPU")
    demo = start_demo(pandod, short_texts, folder, "--device", device)
    output, errors = demo.communicate(timeout=TORCH_PATIENCE_SECONDS)
    assert demo.returncode == 0, output + errors
    assert "bit-equal" in output


def test_demo_says_what_it_lacks_for_a_device(pandod, short_texts, folder):
    demo = start_demo(pandod, short_texts, folder, "--device", "cuda")
    _, errors = demo.communicate(timeout=PATIENCE_SECONDS)
    if demo.returncode == 0:
        pytest.skip("there is a GPU")
    assert re.search("--device: torch (is not installed|finds no GPU)", errors)


def test_demo_serves_the_console_while_it_runs(pandod, short_texts, folder):
    demo = start_demo(pandod, short_texts, folder)
    address = re.search(r"http://\S+/console/", demo.stdout.readline())[0]
    stats = json.load(urlopen(f"{address}api/stats"))
    assert stats["pages"]["capacity"] > 0
    output, errors = demo.communicate(timeout=PATIENCE_SECONDS)
    assert demo.returncode == 0, output + errors


def test_show_has_something_to_watch_and_leaves_nothing(pandod, folder):
    show = subprocess.Popen(
        after(TAKE_INTERRUPTS, sys.executable, SHOW, "--pandod", pandod),
        env=os.environ | {"TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    lines = iter(show.stdout.readline, "")
    address = next(
        found[0]
        for found in (re.search(r"http://\S+", line) for line in lines)
        if found
    )

    def stats() -> dict:
        return json.load(urlopen(f"{address}api/stats"))

    eventually(lambda: stats()["locks"] > 1 and stats()["nodes"] > 20)
    os.killpg(show.pid, signal.SIGINT)
    assert show.wait(PATIENCE_SECONDS) == 0
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stopped_demo_leaves_no_process_and_no_file(
    pandod, short_texts, folder, stop
):
    demo = start_demo(pandod, short_texts, folder)
    while not demo.stdout.readline().startswith("A "):
        assert demo.poll() is None, demo.stderr.read()
    started = [os.pidfd_open(child) for child in children(demo.pid)]
    # These are pandod, two workers and the reference.
    assert len(started) >= 4
    if stop == signal.SIGINT:
        # A terminal also sends the signal to every process in the group.
        os.killpg(demo.pid, stop)
    else:
        demo.send_signal(stop)
    _, errors = demo.communicate(timeout=PATIENCE_SECONDS)
    assert demo.returncode == 128 + stop
    assert errors == ""
    for process in started:
        assert select.select([process], [], [], PATIENCE_SECONDS)[0]
        os.close(process)
    assert list(folder.iterdir()) == []


def test_a_missing_pandod_is_named(short_texts, tmp_path):
    run = subprocess.run(
        [sys.executable, DEMO, "--pandod", tmp_path / "nowhere", "--data", short_texts],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 2
    assert f"there is no {tmp_path}/nowhere" in run.stderr
