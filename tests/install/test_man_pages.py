"""The man pages must explain what --help of the programs lists, in a form for man."""

import re
import subprocess

import pytest
from pandod_process import binary

PAGES = {
    "pandod": "man8/pandod.8.gz",
    "pando-keeper": "man8/pando-keeper.8.gz",
    "pando-mover": "man8/pando-mover.8.gz",
    "pandoctl": "man1/pandoctl.1.gz",
}
FLAG = re.compile(r"--[a-z][a-z-]+")


def help_of(*command: str) -> str:
    program, *verb = command
    path = binary().with_name(program)
    return subprocess.check_output([path, *verb, "--help"], text=True)


def shown(page) -> str:
    """Returns the page as on a terminal, without bold and underlined letters."""
    text = subprocess.check_output(["mandoc", "-T", "ascii", page], text=True)
    return re.sub(".\b", "", text)


@pytest.fixture(params=PAGES)
def program(request):
    return request.param


@pytest.fixture
def page(prefix, program):
    return prefix / "share" / "man" / PAGES[program]


def test_mandoc_finds_nothing_wrong(page):
    subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page], check=True)


def test_every_option_is_explained(page, program):
    flags = set(FLAG.findall(help_of(program))) - {"--help"}
    assert flags, "--help lists no options"
    assert flags <= set(FLAG.findall(shown(page)))


def test_every_verb_has_its_section_with_its_options(prefix):
    text = shown(prefix / "share" / "man" / PAGES["pandoctl"])
    _, _, list_of_verbs = help_of("pandoctl").partition("\nSubcommands:\n")
    verbs = re.findall(r"^  (\w+) ", list_of_verbs, re.MULTILINE)
    assert "completion" in verbs
    for verb in verbs:
        _, found, section = text.partition(f"\n   {verb}\n")
        assert found, verb
        section = re.split(r"\n   \w", section)[0]
        own, _, _ = help_of("pandoctl", verb).partition("\nExamples:\n")
        flags = set(FLAG.findall(own)) - {"--help"}
        assert flags <= set(FLAG.findall(section)), verb
