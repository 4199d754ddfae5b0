"""Programs in the documentation: run, and compared with what their comments say."""

import re
import subprocess
from pathlib import Path

# The address of the pandod that the programs are written for.
_ADDRESS = re.compile(r"unix:/[\w/]+/pando\.sock")
# A sign of a hang, not of slowness. Less than pytest's limit, which would leave the
# program running.
_LIMIT_SECONDS = 240
_COMMENT = {"python": "#", "cpp": "//"}


class DocProgram:
    """The code in one language below one title."""

    def __init__(self, document: Path, title: str, language: str) -> None:
        below = rf"^(###?) {re.escape(title)}$(.*?)(?=^(?:##|\1) |\Z)"
        block = rf"^```{language}\n(.*?)^```$"
        [(_, section)] = re.findall(
            below, document.read_text(), re.MULTILINE | re.DOTALL
        )
        pieces = re.findall(block, section, re.MULTILINE | re.DOTALL)
        self._source = "\n".join(pieces)
        assert _ADDRESS.search(self._source)
        # After code; perhaps with the name of the call before it.
        comment = rf"[^\s/].* {_COMMENT[language]} (?:Admin\.\w+: )?(.*)$"
        self._printed = re.findall(comment, self._source, re.MULTILINE)

    def source(self, address: str) -> str:
        return _ADDRESS.sub(address, self._source)

    def check(self, *command: object) -> None:
        """Runs it; what it prints is compared word by word."""
        done = subprocess.run(
            list(map(str, command)),
            capture_output=True,
            text=True,
            timeout=_LIMIT_SECONDS,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.split() == " ".join(self._printed).split()
