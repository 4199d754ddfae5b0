"""The Valkey of the overlay for tiers, run with the options of its container."""

import re
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
import yaml
from manifests import KUBERNETES, REPOSITORY
from redis_server import RedisServer
from shared_redis import Machines, with_options
from tiered import PROMPT

OVERLAY = KUBERNETES / "overlays" / "tiers"
PASSWORD = "a-password"
# The user as whom the test looks at the store.
OBSERVER = {"username": "observer", "password": "another-password"}
DOCUMENT = REPOSITORY / "docs" / "kubernetes.md"


@pytest.fixture
def secret(tmp_path) -> Path:
    """Returns the folder of the Secret that docs/kubernetes.md tells how to make."""
    (users,) = re.findall(
        r'--from-literal=users\.acl="(.*?)"', DOCUMENT.read_text(), re.DOTALL
    )
    folder = tmp_path / "secret"
    folder.mkdir()
    observer = "user {username} on >{password} ~* +@all\n".format(**OBSERVER)
    (folder / "users.acl").write_text(
        users.replace("$password", PASSWORD) + "\n" + observer
    )
    (folder / "password").write_text(PASSWORD)
    return folder


@pytest.fixture
def options(secret) -> dict[str, str]:
    """Returns the server's options, with the paths of this machine."""
    lines = (OVERLAY / "valkey.conf").read_text().splitlines()
    named = dict(line.split(" ", 1) for line in lines if not line.startswith("#"))
    assert Path(named["aclfile"]).name == "users.acl"
    # The test sets its own port and folder. It leaves out save, whose '""' stands for
    # an empty value only in a file.
    given = {name: named[name] for name in named.keys() - {"port", "dir", "save"}}
    return given | {"aclfile": str(secret / "users.acl")}


def test_it_lets_pandod_do_what_it_needs_and_nobody_else(tmp_path, secret, options):
    with ExitStack() as stack:
        server = RedisServer(tmp_path / "server", "valkey", OBSERVER, **options)
        stack.callback(server.kill)
        tier = yaml.safe_load((OVERLAY / "pandod.yaml").read_text())["tier"]
        given = dict(parse_qsl(urlsplit(tier["shared"]).query))
        password_file = secret / Path(given.pop("password-file")).name
        access = {
            "tier_shared": with_options(
                server.url, password_file=password_file, **given
            )
        }
        machines = Machines(stack, tmp_path, server, server.url)
        one, other, stranger = (
            machines.start(**given) for given in (access, access, {})
        )
        computed = one.cache(PROMPT, seed=1)
        np.testing.assert_array_equal(other.read()[1], computed)
        assert stranger.read()[0] == 0
        assert "NOAUTH" in stranger.pandod.log()
