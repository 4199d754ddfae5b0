"""The command `pando`: a pandod, and engines on it, with one line each.

usage: pando up [OPTIONS OF pandod]
       pando run [-n N] [--address ADDRESS] -- sglang serve ...
       pando run [-n N] [--address ADDRESS] -- vllm serve ...

`up` starts pandod in the background, unless one serves at the socket already, and
pando-keeper starts it again when it is killed. `run` runs an engine, or N of them on
consecutive ports, with the flags that put it on the pool; it prints the whole command.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from pando_server.programs import path_of
from pando_server.run import run
from pando_server.up import up

_USAGE = __doc__.split("\n\n")[1].removeprefix("usage: ")
# Options to which pandod prints an answer and exits.
_ANSWERED = ("--help", "--version", "--check-config", "--print-config")


def main() -> int:
    verb, *arguments = sys.argv[1:] or ["--help"]
    if verb == "up":
        if any(argument in _ANSWERED for argument in arguments):
            return subprocess.run([path_of("pandod"), *arguments]).returncode
        return up(arguments)
    if verb == "run":
        return run(_run_options(arguments))
    print(__doc__.strip(), file=sys.stdout if verb in ("-h", "--help") else sys.stderr)
    return 0 if verb in ("-h", "--help") else 2


def _run_options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="pando run", usage=_USAGE)
    parser.add_argument("-n", type=int, default=1, help="how many engines")
    parser.add_argument("--address", default="", help="of pandod")
    parser.add_argument("engine", nargs=argparse.REMAINDER, metavar="-- COMMAND")
    options = parser.parse_args(arguments)
    if options.engine[:1] == ["--"]:
        del options.engine[0]
    if not options.engine:
        parser.error("the engine's command is missing: pando run -- vllm serve ...")
    if options.n < 1:
        parser.error(f"-n is {options.n}; must be at least 1")
    return options
