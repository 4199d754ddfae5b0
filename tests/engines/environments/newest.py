"""A program that lists the changes in an engine's newest release, and runs the quick
tests on it.

usage: newest.py sglang|vllm

Run it with the Python of that engine's environment (python.sh). It uses the binaries
and the other packages of that environment, and keeps the files of the release beside it
(releases.py). Its exit status is that of the tests. The tests of vLLM also fail if the
release has changed anything that Pando leans on.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from engines.environments.environment import TRY_AGAIN_LATER
from engines.environments.releases import (
    environment_of,
    newest_version,
    release,
    run_quick_tests,
)
from pando_kv._seams import SEAMS

# The program below runs in its own process, which imports the release.
_SAY_CHANGES = """
import json, sys
from pando_kv._seams import changes_of
print(json.dumps({name: changes_of(name) for name in sys.argv[1:]}))
"""


def main() -> int:
    (engine,) = sys.argv[1:]
    try:
        version = newest_version(engine)
        own = importlib.import_module(engine)
        environment = dict(os.environ)
        if version != own.__version__:
            folder = release(engine, version, Path(own.__file__).parent)
            environment = environment_of(folder)
    except subprocess.CalledProcessError as error:
        print(f"the newest {engine} cannot be had: {error}", file=sys.stderr)
        return TRY_AGAIN_LATER
    environment["PANDO_ANY_ENGINE_VERSION"] = "1"
    _say_changes(engine, version, environment)
    with tempfile.TemporaryDirectory() as scratch:
        tests = run_quick_tests(engine, environment, Path(scratch, "r"))
    return tests.returncode


def _say_changes(engine: str, version: str, environment: dict[str, str]) -> None:
    names = [name for name in SEAMS if SEAMS[name].engine.lower() == engine]
    said = subprocess.check_output(
        [sys.executable, "-c", _SAY_CHANGES, *names], env=environment, text=True
    )
    for name, changes in json.loads(said.splitlines()[-1]).items():
        seam = SEAMS[name]
        is_tested = "tested" if version in seam.versions else "not tested"
        print(f"{name}: the newest {seam.engine} is {version}, {is_tested}", end="")
        print(f"; {len(changes)} of what it leans on differ", flush=True)
        for change in changes:
            print(f"  {change}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
