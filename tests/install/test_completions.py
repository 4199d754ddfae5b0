"""The shells' completion of pandoctl, at the place where it is installed."""

import subprocess

from pandod_process import binary
from terminal import Terminal


def test_bash_is_given_what_pandoctl_prints(prefix):
    script = prefix / "share" / "bash-completion" / "completions" / "pandoctl"
    pandoctl = binary().with_name("pandoctl")
    assert script.read_bytes() == subprocess.check_output(
        [pandoctl, "completion", "bash"]
    )


def test_zsh_loads_it_at_the_first_completion(prefix):
    folder = prefix / "share" / "zsh" / "vendor-completions"
    environment = {"PATH": "/usr/bin:/bin", "TERM": "dumb", "PS1": "READY "}
    with Terminal(["zsh", "-f", "-i"], environment) as zsh:
        zsh.read_until("READY ")
        zsh.type(f"fpath=({folder} $fpath); autoload -U compinit; compinit -D -u\n")
        zsh.read_until("READY ")
        zsh.type("pandoctl sess\t")
        zsh.read_until("pandoctl sessions ")
        zsh.type("-o ya\t")
        zsh.read_until("-o yaml ")
