"""Writes a compressed man page: a template with what the program's --help lists.

usage: generate.py PROGRAM VERSION TEMPLATE PAGE
"""

import gzip
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

# The column in which --help begins explanations, unless a name is longer.
EXPLANATION_COLUMN = 30


def output_of(*command: str) -> str:
    return subprocess.check_output(command, text=True)


def listed(help_text: str, title: str) -> Iterator[tuple[str, str]]:
    """Yields the entries that --help lists under a title, each with its explanation."""
    entry, words = "", []
    in_section = False
    for line in help_text.splitlines():
        text = line.strip()
        if text.endswith(":") and not line.startswith(" "):
            in_section = text == f"{title}:"
        elif in_section and text and not text.startswith("["):
            if len(line) - len(line.lstrip()) < EXPLANATION_COLUMN:
                if entry:
                    yield entry, " ".join(words)
                entry, _, text = re.split(r"(\s{2,}|$)", text, maxsplit=1)
                words = []
            words += text.split()
    if entry:
        yield entry, " ".join(words)


def roff(text: str) -> str:
    """Escapes a text, so that roff prints it unchanged."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{escaped}" if escaped.startswith((".", "'")) else escaped


def entries(help_text: str) -> str:
    """Returns a paragraph for each argument and option except --help."""
    lines = []
    for title in ("Positionals", "Options"):
        for entry, explanation in listed(help_text, title):
            name, _, value = entry.partition(" ")
            if name == "-h,--help":
                continue
            lines += [".TP", rf"\fB{roff(name)}\fR {roff(value)}".rstrip()]
            lines.append(roff(explanation))
    return "\n".join(lines)


def verbs(program: str, help_text: str) -> str:
    """Returns a subsection for each verb."""
    parts = []
    for verb, explanation in listed(help_text, "Subcommands"):
        own = output_of(program, verb, "--help")
        (usage,) = re.findall(r"^Usage: (.*)$", own, re.MULTILINE)
        parts += [f".SS {verb}", rf"\fB{roff(usage)}\fR", ".PP", f"{explanation}."]
        parts += filter(None, [entries(own)])
    return "\n".join(parts)


def main() -> None:
    program, version, template, page = sys.argv[1:]
    help_text = output_of(program, "--help")
    text = Path(template).read_text().replace("@VERSION@", version)
    text = text.replace("@OPTIONS@", entries(help_text))
    if "@VERBS@" in text:
        text = text.replace("@VERBS@", verbs(program, help_text))
    Path(page).write_bytes(gzip.compress(text.encode(), mtime=0))


main()
