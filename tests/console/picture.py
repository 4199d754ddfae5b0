"""A program that renews docs/console.png: the console of `make show` after a minute.

usage: picture.py PANDOD
"""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY / "tests" / "support"))

from console_page import browser  # noqa: E402

WIDTH, HEIGHT = 1280, 1120
# After this time evictions have begun, and the charts' lines are long enough to see.
SHOWN_SECONDS = 60
ADDRESS = re.compile(r"http://(\S+?)/console/")


def main() -> None:
    show = REPOSITORY / "examples" / "demo" / "show.py"
    with subprocess.Popen(
        [sys.executable, show, "--pandod", sys.argv[1]],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            address = next(filter(None, map(ADDRESS.search, process.stdout)))[1]
            with browser() as page:
                page.open(address)
                page.viewport(WIDTH, HEIGHT)
                time.sleep(SHOWN_SECONDS)
                picture = page.screenshot("console")
            (REPOSITORY / "docs" / "console.png").write_bytes(picture.read_bytes())
        finally:
            process.send_signal(signal.SIGINT)


if __name__ == "__main__":
    main()
