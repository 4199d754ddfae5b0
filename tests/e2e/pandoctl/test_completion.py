"""The help of pandoctl while a user types: shell completion, and the text of --help."""

import subprocess
from pathlib import Path

import pytest
from pandoctl import Pandoctl
from terminal import Terminal


@pytest.fixture
def ctl(tmp_path: Path) -> Pandoctl:
    """Returns a pandoctl without a pandod, because completions make no call."""
    return Pandoctl(f"unix:{tmp_path}/nobody.sock")


def completions(ctl: Pandoctl, line: str) -> list[str]:
    """Returns the words bash offers for the last word; options only after "-"."""
    words = ["pandoctl", *line.split(" ")]
    script = (
        f"{ctl('completion', 'bash').out}\n"
        f"COMP_WORDS=({' '.join(word or repr('') for word in words)})\n"
        f"COMP_CWORD={len(words) - 1}\n"
        "_pandoctl\n"
        "printf '%s\\n' \"${COMPREPLY[@]}\"\n"
    )
    out = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, text=True, check=True
    )
    assert out.stderr == ""
    return [word for word in out.stdout.split() if line[-1:] == "-" or word[0] != "-"]


def test_bash_completes_verbs_options_and_their_values(ctl, tmp_path):
    assert completions(ctl, "sta") == ["status", "stat"]
    assert completions(ctl, "-o json po") == ["policy"]
    assert completions(ctl, "locks -o ") == ["table", "json", "yaml"]
    assert "mru" in completions(ctl, "policy ")
    options = completions(ctl, "flush -")
    assert {"--all", "--namespace", "--yes", "--address"} <= set(options)
    assert "--limit" not in options
    (tmp_path / "tokens").touch()
    found = completions(ctl, f"match --tokens-file {tmp_path}/tok")
    assert found == [f"{tmp_path}/tokens"]


def test_zsh_completes_by_the_same_script(ctl):
    environment = {"PATH": f"{ctl.program.parent}:/usr/bin:/bin", "TERM": "dumb"}
    with Terminal(["zsh", "-f", "-i"], environment | {"PS1": "READY "}) as zsh:
        zsh.read_until("READY ")
        zsh.type("source <(pandoctl completion zsh)\n")
        zsh.read_until("READY ")
        zsh.type("pandoctl sess\t")
        zsh.read_until("pandoctl sessions ")
        zsh.type("-o ya\t")
        zsh.read_until("-o yaml ")


def test_help_tells_of_every_verb(ctl):
    text = ctl("--help").out
    assert all(f"\n  {verb} " in text for verb in completions(ctl, ""))
    assert "--tokens-file" in ctl("explain", "--help").out
