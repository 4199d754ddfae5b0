"""The Python examples of README.md and of the client's README, with the pandod that
these start."""

import re
import sys

import pytest
from doc_programs import DocProgram
from pandod_process import OPEN, REPOSITORY, serving

CLIENT = REPOSITORY / "clients" / "python"


@pytest.mark.parametrize(
    ("folder", "title"), [(REPOSITORY, "From Python"), (CLIENT, "Five minutes")]
)
def test_python(folder, title, tmp_path):
    text = (folder / "README.md").read_text()
    [options] = re.findall(
        r"pandod --socket /tmp/pando\.sock((?: --\S+ [\w.]+)+)", text
    )
    given = {
        name.replace("-", "_"): value
        for name, value in re.findall(r"--(\S+) (\S+)", options)
    }
    program = DocProgram(folder / "README.md", title, "python")
    script = tmp_path / "readme.py"
    with serving(tmp_path, **OPEN | given) as pandod:
        script.write_text(program.source(pandod.address))
        program.check(sys.executable, script)
