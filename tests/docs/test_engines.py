"""docs/engines.md: its worker, which must print what the page says, and its versions,
with which the seams must have been tested."""

import re
import sys

from doc_programs import DocProgram
from pando_kv._seams import SEAMS
from pandod_process import REPOSITORY

PAGE = REPOSITORY / "docs" / "engines.md"


def test_the_worker_serves_what_another_computed(pandod, tmp_path):
    program = DocProgram(PAGE, "In Python", "python")
    script = tmp_path / "worker.py"
    script.write_text(program.source(pandod.address))
    program.check(sys.executable, script)


def test_the_versions_are_those_that_each_seam_was_tested_with():
    table = PAGE.read_text().partition("### Versions")[2].partition("\n\n\n")[0]
    rows = re.findall(r"^\| `(.+?)` \| (.+?) \| (.+?) \|$", table, re.MULTILINE)
    assert {
        (name, engine, tuple(tested.split(", "))) for name, engine, tested in rows
    } == {(name, seam.engine, seam.versions) for name, seam in SEAMS.items()}
