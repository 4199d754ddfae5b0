"""The documents' commands need only what the documents say."""

import re

import pytest
from pandod_process import REPOSITORY

# A reader may begin with any of these pages.
FIRST_PAGES = [
    "README.md",
    "clients/python/README.md",
    "docs/calls.md",
    "docs/operations.md",
]


def commands(text: str) -> str:
    return "\n".join(re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("page", FIRST_PAGES)
def test_a_page_says_where_the_programs_are_before_it_calls_them(page):
    text = (REPOSITORY / page).read_text()
    called = re.search(r"^(pandod|pandoctl) ", text, re.MULTILINE)
    before = text[: called.start()] if called else text
    assert "build/release/bin" in before


@pytest.mark.parametrize("page", FIRST_PAGES)
def test_commands_need_nothing_that_a_bare_machine_lacks(page):
    typed = commands((REPOSITORY / page).read_text())
    assert not re.findall(r"\$USER\b|\bcurl\b|\bwget\b", typed)
