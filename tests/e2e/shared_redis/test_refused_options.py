"""Addresses of a shared store that keep pandod from starting."""

import pytest
from pandod_process import refused_start


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("localhost:6379", "without a scheme"),
        ("http://localhost:6379", "of an unknown kind"),
        ("redis://:secret@localhost", "password-file"),
        ("redis://localhost?password=secret", "must be one of user, password-file"),
        ("redis://localhost?secret", "must be NAME=VALUE"),
        ("redis://localhost:0", "whose port"),
        ("redis://localhost,rediss://localhost", "with and without TLS"),
        ("redis://a,file:///tmp", "in one of them"),
        ("redis://a,redis://b?ttl=2h", "another address than the first"),
        ("redis://a?user=b", "password-file"),
        ("redis://a?ttl=1s", "from 1h to 8760h"),
        ("redis://a?ca=b", "need an address rediss"),
        ("rediss://a?key=b", "both or not at all"),
        ("rediss://a?ca=/b", "a ca that cannot be used, /b"),
        ("file://tmp", "file:///FOLDER alone"),
        ("file:///tmp?ttl=2h", "file:///FOLDER alone"),
    ],
    ids=str,
)
def test_addresses_that_make_no_sense_are_refused(tmp_path, address, said):
    error = refused_start(
        tmp_path, f"--tier-shared={address}", "--model=m", "--pool-pages=8"
    )
    assert said in error
    assert "secret" not in error


@pytest.mark.parametrize("address", ["redis://a", "redis://:secret@a"])
def test_a_store_without_a_model_is_refused(tmp_path, address):
    error = refused_start(tmp_path, f"--tier-shared={address}")
    assert "which needs model" in error
    assert "secret" not in error
