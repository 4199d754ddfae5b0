"""Programs in the documents, which tests run and compare with their comments."""

import re
import subprocess
from pathlib import Path

# The address of the pandod in the programs, which a test replaces.
_ADDRESS = re.compile(r"unix:/[\w/]+/pando\.sock")
# A program that takes longer hangs. The limit is below pytest's, at which the program
# would keep running.
_LIMIT_SECONDS = 240
_COMMENT = {"python": "#", "cpp": "//"}


class DocProgram:
    """The code in one language below one title of a document."""

    def __init__(self, document: Path, title: str, language: str) -> None:
        below = rf"^(###?) {re.escape(title)}$(.*?)(?=^(?:##|\1) |\Z)"
        block = rf"^```{language}\n(.*?)^```$"
        [(_, section)] = re.findall(
            below, document.read_text(), re.MULTILINE | re.DOTALL
        )
        pieces = re.findall(block, section, re.MULTILINE | re.DOTALL)
        self._source = "\n".join(pieces)
        assert _ADDRESS.search(self._source)
        # A comment follows code; a call's name may come before the expected output.
        comment = rf"[^\s/].* {_COMMENT[language]} (?:Admin\.\w+: )?(.*)$"
        self._printed = re.findall(comment, self._source, re.MULTILINE)

    def source(self, address: str) -> str:
        return _ADDRESS.sub(address, self._source)

    def check(self, *command: object) -> None:
        """Runs the command, and compares its output word by word with the comments."""
        done = subprocess.run(
            list(map(str, command)),
            capture_output=True,
            text=True,
            timeout=_LIMIT_SECONDS,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.split() == " ".join(self._printed).split()
