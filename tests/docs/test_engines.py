"""docs/engines.md: the worker in it runs, and what it prints is what it says."""

import sys

from doc_programs import DocProgram
from pandod_process import REPOSITORY


def test_the_worker_serves_what_another_computed(pandod, tmp_path):
    program = DocProgram(REPOSITORY / "docs" / "engines.md", "In Python", "python")
    script = tmp_path / "worker.py"
    script.write_text(program.source(pandod.address))
    program.check(sys.executable, script)
