"""The short soak."""

import os
import subprocess
import sys

from soak.fleet import PACKAGES

SECONDS = 20
WORKERS = 6
SEED = 1


def test_a_short_soak_leaves_exact_accounts():
    path = os.pathsep.join([*map(str, PACKAGES), os.environ.get("PYTHONPATH", "")])
    subprocess.run(
        [
            *(sys.executable, "-m", "soak", "--seconds", str(SECONDS)),
            *("--workers", str(WORKERS), "--seed", str(SEED)),
        ],
        env=os.environ | {"PYTHONPATH": path},
        check=True,
    )
