"""The examples in Python of README.md and of the client's: they run as they say."""

import sys

import pytest
from doc_programs import DocProgram
from pandod_process import REPOSITORY

CLIENT = REPOSITORY / "clients" / "python"


@pytest.mark.parametrize(
    ("folder", "title"), [(REPOSITORY, "From Python"), (CLIENT, "Five minutes")]
)
def test_python(folder, title, pandod, tmp_path):
    program = DocProgram(folder / "README.md", title, "python")
    script = tmp_path / "readme.py"
    script.write_text(program.source(pandod.address))
    program.check(sys.executable, script)
