"""Options of a shared store that pandod does not start with."""

import pytest
from pandod_process import refused_start


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--tier-redis=localhost:6379"], "of an unknown kind"),
        (["--tier-redis=redis://:secret@localhost"], "tier-redis-password-file"),
        (["--tier-redis=redis://localhost:0"], "whose port"),
        (["--tier-redis=redis://localhost,rediss://localhost"], "with and without TLS"),
        (["--tier-redis=redis://a", "--tier-folder=/tmp"], "in one of them"),
        (["--tier-redis=redis://a", "--tier-redis-user=b"], "password-file"),
        (["--tier-redis=redis://a", "--tier-redis-ca=b"], "need an address rediss"),
        (["--tier-redis=rediss://a", "--tier-redis-key=b"], "both or not at all"),
        (["--tier-redis=rediss://a", "--tier-redis-ca=/b"], "/b cannot be used"),
    ],
    ids=str,
)
def test_options_that_make_no_sense_are_refused(tmp_path, options, said):
    error = refused_start(tmp_path, *options, "--model=m", "--pool-pages=8")
    assert said in error
    assert "secret" not in error


def test_a_store_without_a_model_is_refused(tmp_path):
    assert "which needs model" in refused_start(tmp_path, "--tier-redis=redis://a")
