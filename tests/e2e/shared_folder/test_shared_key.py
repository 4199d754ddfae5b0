"""A key that signs what is shared: blocks without the signature are not believed."""

import numpy as np
import pytest
from eventually import eventually
from pandod_process import PAGE_TOKENS, refused_start
from protocol_worker import protocol_worker
from shared_folder import block_files
from tiered import PAGES, PROMPT

HEADER = slice(0, 64)
DIGEST = slice(8, 16)
MAC = slice(64, 96)
SECRET = "a-secret-of-machines-that-trust-each-other"


@pytest.fixture
def key_file(tmp_path):
    def write(secret: str = SECRET):
        path = tmp_path / f"key-{secret[:8]}"
        path.write_text(secret)
        path.chmod(0o600)
        return path

    return write


def test_machines_with_one_key_share(machines, key_file):
    signed = {"tier_shared_key_file": key_file()}
    one, other = machines.start(**signed), machines.start(**signed)
    computed = one.cache(PROMPT, seed=1)
    matched, loaded = other.read()
    assert matched == PROMPT.size
    np.testing.assert_array_equal(loaded, computed)
    for sharing in (one, other):
        assert SECRET not in sharing.pandod.log()
    for path in machines.shared.rglob("*"):
        assert path.is_dir() or SECRET.encode() not in path.read_bytes()


def test_a_block_with_a_right_checksum_that_nobody_signed_is_a_miss(machines, key_file):
    signed = {"tier_shared_key_file": key_file()}
    one, other = machines.start(**signed), machines.start(**signed)
    computed = one.cache(PROMPT, seed=1)
    victim = block_files(machines.shared)[4]
    # The forger's own pandod stores other pages for the same prompt.
    forger = machines.start()
    forger.cache(PROMPT, seed=2)
    assert forger.held_pages() == 2 * PAGES
    [forged] = [
        path
        for path in block_files(machines.shared)
        if path.name == victim.name and path != victim
    ]
    block, other_block = victim.read_bytes(), forged.read_bytes()
    header = bytearray(other_block[HEADER])
    # The forger can read this digest in the victim's file.
    header[DIGEST] = block[DIGEST]
    page = other_block[HEADER.stop :]
    assert page != block[MAC.stop :]
    victim.write_bytes(bytes(header) + block[MAC] + page)
    matched, loaded = other.read()
    assert matched == 4 * PAGE_TOKENS
    np.testing.assert_array_equal(loaded, computed[:, :4])
    assert other.failures("verify") == 1
    assert not victim.exists()


def test_who_has_another_key_or_none_sees_and_erases_nothing(machines, key_file):
    one = machines.start(tier_shared_key_file=key_file())
    computed = one.cache(PROMPT, seed=1)
    strangers = [
        machines.start(tier_shared_key_file=key_file("b" * 32)),
        machines.start(),
    ]
    for stranger in strangers:
        assert stranger.read()[0] == 0
        stranger.cache(PROMPT, seed=2)
        with protocol_worker(stranger.pandod.address) as worker:
            worker.call("Flush")
        eventually(lambda: one.held_pages() == PAGES)
        assert stranger.failures("verify") == 0
    another = machines.start(tier_shared_key_file=key_file())
    np.testing.assert_array_equal(another.read()[1], computed)
    assert another.failures("verify") == 0


@pytest.mark.parametrize(
    ("secret", "mode", "said"),
    [
        ("s" * 31, 0o600, "has 31 bytes; must have 32"),
        (SECRET, 0o644, "whose mode is 0644"),
        (SECRET, 0o640, "whose mode is 0640"),
        (None, None, "open "),
    ],
    ids=str,
)
def test_a_key_that_is_none_or_no_secret_is_refused(tmp_path, secret, mode, said):
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o700)
    path = tmp_path / "key"
    if secret is not None:
        path.write_text(secret)
        path.chmod(mode)
    error = refused_start(
        tmp_path,
        f"--tier-shared-key-file={path}",
        f"--tier-shared=file://{shared}",
        "--model=m",
        "--pool-pages=8",
    )
    assert "tier-shared-key-file" in error
    assert said in error
    assert "sss" not in error and SECRET not in error


def test_a_key_without_a_shared_store_is_refused(tmp_path):
    assert "needs tier-shared" in refused_start(
        tmp_path, f"--tier-shared-key-file={tmp_path}"
    )
