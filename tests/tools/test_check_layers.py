"""The check of layers, on trees that obey its tables and on trees that do not."""

import subprocess
import sys
from pathlib import Path

import pytest
from pandod_process import REPOSITORY


@pytest.fixture
def check(tmp_path):
    """Returns a function that checks a tree of files with one include each.

    The function returns the exit status and the lines of the output.
    """

    def run(includes: dict[str, str]) -> tuple[int, list[str]]:
        for file, header in includes.items():
            path = tmp_path / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"#include {header}\n")
        git(tmp_path, "init", "-q")
        git(tmp_path, "add", ".")
        done = subprocess.run(
            [sys.executable, REPOSITORY / "tools/check_layers.py", tmp_path],
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout.splitlines()

    return run


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True)


GOOD = {
    "core/tree.cc": '"base/ids.h"',
    "core/tree.h": "<vector>",
    "clients/cpp/src/client.cc": '"pando/client.h"',
    "service/main.cc": '"service/console/console.h"',
    "service/handlers/insert.cc": '"service/calls/call.h"',
    "tiers/local/tier.cc": '"tiers/tier_figures.h"',
    "tiers/tiers.cc": '"tiers/local/tier.h"',
    "bench/rpc/main.cc": '"service/rpc/server.h"',
    "tests/core/tree_test.cc": '"service/server.h"',
}


def test_a_tree_that_obeys_the_tables_passes(check):
    assert check(GOOD) == (0, ["layers: ok"])


@pytest.mark.parametrize(
    ("file", "header"),
    [
        ("core/tree.cc", '"service/server.h"'),
        ("core/clock.h", "<thread>"),
        ("clients/cpp/src/client.cc", '"core/tree.h"'),
        ("service/security/peer.cc", '"service/handlers/insert.h"'),
        ("service/memory/pool.cc", '"cuda.h"'),
        ("tiers/local/disk.cc", '"service/server.h"'),
        ("tiers/copying/pages.cc", '"tiers/local/disk.h"'),
        ("tiers/local/disk.cc", '"tiers/tiers.h"'),
        ("bench/load/main.cc", '"service/rpc/server.h"'),
    ],
)
def test_an_include_that_crosses_layers_is_named(check, file, header):
    code, lines = check(GOOD | {file: header})
    assert (code, lines) == (1, [f"{file} includes {header[1:-1]}"])


@pytest.mark.parametrize(
    "folder", ["caches", "service/cellar", "tiers/tape", "bench/shelf"]
)
def test_a_folder_without_a_row_is_named(check, folder):
    code, lines = check(GOOD | {f"{folder}/deep/new.cc": "<vector>"})
    assert (code, lines) == (1, [f"{folder} has no row in tools/check_layers.py"])
