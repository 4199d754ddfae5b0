"""Writes docs/configuration.md from the options that pandod prints.

usage: options_docs.py [--check] PANDOD

--check writes nothing, and fails when the file differs.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

FILE = Path(__file__).resolve().parent.parent / "docs" / "configuration.md"

HEAD = """\
# Configuration

Every option of `pandod`. Written by `tools/options_docs.py` from the table in `service/options/option_table.cc`, which
`pandod --print-options` prints as JSON: change it there.

An option is given in three ways, each overriding the one before it, and the defaults:

| | `pool-pages` as an example |
|---|---|
| in the YAML file that `--config` or `PANDO_CONFIG` names | `pool-pages: 4096`, or `pages: 4096` in a map `pool` |
| in the environment | `PANDO_POOL_PAGES=4096` |
| as a flag | `--pool-pages 4096` or `--pool-pages=4096` |

A name that is not known is an error, in the file, as a flag and in the environment (all of `PANDO_*`, but for the variables
of clients and engines, such as `PANDO_ADDRESS` and `PANDO_TOKEN`, and those with which Kubernetes describes services); it
names the nearest known one, or the one that engines have another word for (`num-kv-heads`: `heads`). So is a value that
cannot be.

| `pandod` with | does |
|---|---|
| `--check-config` | checks all options, and what a start finds on this machine: folders of sockets, files, memory, room on disks; says what they come to. Neither GPUs nor other servers are asked, and no address is taken, so it may run beside a `pandod` that serves |
| `--print-config` | prints the options in effect as a YAML file that is read back as the same, each with where it is from |

Both end with status 0 when the options are good, and with 2 and a sentence on stderr when they are not. Durations have a
unit (`500ms`, `2s`, `1h`); sizes may have one (`512MiB`, `2GiB`). No option is a secret.

The file alone has `quotas` and `block_quotas`, [lists of what namespaces and kinds of blocks may
have](operations.md#quotas), and `credentials`, [a list of callers and what they may do](security.md#credentials-and-roles).

SIGHUP lets a running `pandod` read all of it again, as at the start. *Live* options then change, all of them between two
calls, and so do the floors and caps of quotas whose classes and patterns are the same. The log names what changed,
with the values before and now (`the options were read again`), and what needs a restart (`changed options need a restart`).
Options that cannot be read, or that do not fit to the running pool, change nothing and are an error in the log. Nothing
that is cached, locked or reserved is lost. An eviction policy that an operator has set with `SetEvictionPolicy` stays until
another one than before is configured. After SIGTERM, SIGHUP has no effect. Replace the file by renaming another to its
name: one that is half written, or still empty, when it is read counts as it is. Only a regular file is read.
"""


def row(option: dict) -> str:
    value = option["value"].replace("|", r"\|")
    default = f"`{option['default']}`" if option["default"] else ""
    cells = (
        f"`{option['name']}`",
        value,
        default,
        f"`{option['environment']}`",
        "yes" if option["live"] else "",
        option["help"],
    )
    return f"| {' | '.join(cells)} |"


def document(options: list[dict]) -> str:
    rows = "\n".join(map(row, options))
    titles = "| option | value | default | environment | live | meaning |\n|---|---|---|---|---|---|"
    return f"{HEAD}\n{titles}\n{rows}\n"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("pandod")
    arguments = parser.parse_args()
    printed = subprocess.check_output([arguments.pandod, "--print-options"])
    text = document(json.loads(printed))
    if not arguments.check:
        FILE.write_text(text)
    elif FILE.read_text() != text:
        print(f"{FILE} is not what pandod prints; run tools/options_docs.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
