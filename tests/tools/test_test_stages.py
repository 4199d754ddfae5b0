"""The summary of `make test`, for stages that pass, fail, skip and break."""

import subprocess
import sys

import pytest
from pandod_process import REPOSITORY

MAKEFILE = """
good:
	@cp cases.xml $(RESULTS)/
bad:
	@cp failing.xml $(RESULTS)/; exit 1
broken:
	@exit 2
plain:
	@true
waits:
	@mkfifo met; echo here >met
meets:
	@until [ -p met ]; do :; done; read word <met; echo $$word
"""
CASES = """<testsuites><testsuite>
<testcase classname="a" name="one"/>
<testcase classname="a" name="two"><skipped message="no kubectl"/></testcase>
<testcase classname="b" name="three"><skipped message="PATTERN"/><system-out>
/src/b_test.cc:12: Skipped
there is no GPU
</system-out></testcase>
</testsuite></testsuites>"""
FAILING = """<testsuite>
<testcase classname="c" name="four"><failure message="no"/></testcase>
</testsuite>"""


@pytest.fixture
def run_stages(tmp_path):
    (tmp_path / "Makefile").write_text(MAKEFILE)
    (tmp_path / "cases.xml").write_text(CASES)
    (tmp_path / "failing.xml").write_text(FAILING)

    def run(*targets: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, REPOSITORY / "tools/test_stages.py", "results", *targets],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )

    return run


def rows(output: str) -> dict[str, list[str]]:
    table = output.partition("-----\n")[2].partition("\n\n")[0]
    return {line.split()[0]: line.split()[1:5] for line in table.splitlines()}


def test_each_stage_runs_although_one_before_it_failed(run_stages):
    done = run_stages("bad", "broken", "good", "plain")
    assert done.returncode == 1
    assert rows(done.stdout) == {
        "bad": ["FAILED", "0", "1", "0"],
        "broken": ["FAILED", "-", "-", "-"],
        "good": ["ok", "1", "0", "2"],
        "plain": ["ok", "-", "-", "-"],
    }


def test_reasons_of_skips_and_names_of_failures_are_told(run_stages):
    output = run_stages("good", "bad", "broken").stdout
    assert "   1 no kubectl\n" in output
    assert "   1 there is no GPU\n" in output
    assert "  bad: c::four\n" in output
    assert "  broken: as a whole; its output is above\n" in output
    assert max(map(len, output.splitlines())) <= 80


def test_what_passes_exits_with_zero(run_stages):
    assert run_stages("good", "plain").returncode == 0


def test_a_build_is_made_while_its_stage_runs_and_is_no_stage(run_stages, tmp_path):
    # Each of the two targets ends only if the other runs.
    done = run_stages("waits+meets")
    assert done.returncode == 0
    assert rows(done.stdout) == {"waits": ["ok", "-", "-", "-"]}
    assert (tmp_path / "results/waits/meanwhile.log").read_text() == "here\n"


def test_a_build_that_fails_is_left_to_the_stage_that_needs_it(run_stages):
    assert run_stages("plain+broken").returncode == 0
    assert run_stages("plain+broken", "broken").returncode == 1
