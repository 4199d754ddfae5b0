"""Checks of the parts of vLLM that the seams lean on, against the tested releases."""

import importlib

import pytest
from pando_kv._seams import SEAMS, changes_of, require_seam
from pando_kv._seams.changes import changes

VLLM = [name for name, seam in SEAMS.items() if seam.engine == "vLLM"]


@pytest.mark.parametrize("name", VLLM)
def test_this_vllm_is_as_it_was_tested(name):
    assert changes_of(name) == []
    require_seam(name)


# Arguments that Pando takes from the pool, and their defaults in vLLM.
FILLED_IN = {
    "block_size": None,
    "num_gpu_blocks_override": None,
    "kv_cache_memory_bytes": None,
    "async_scheduling": None,
    "gpu_memory_utilization": 0.92,
}


def test_arguments_that_are_filled_in_are_none_of_vllms_own():
    from vllm.engine.arg_utils import EngineArgs

    assert {name: getattr(EngineArgs, name) for name in FILLED_IN} == FILLED_IN


@pytest.mark.parametrize(
    "module",
    [
        "pages.connector",
        "offloading.spec",
        "offloading.worker",
        "offloading.device_copies",
    ],
)
def test_all_that_is_imported_of_this_vllm_is_there(module):
    importlib.import_module(f"pando_kv.vllm.{module}")


def test_what_is_not_as_it_was_is_named_with_the_version(monkeypatch):
    """The message names the version and the first parts of vLLM that differ."""
    from vllm.v1.kv_offload import base

    monkeypatch.delenv("PANDO_ANY_ENGINE_VERSION", raising=False)
    monkeypatch.setattr("vllm.__version__", "0.34.0")
    monkeypatch.delattr(base, "LookupResult")
    monkeypatch.setattr(base.OffloadingManager, "prepare_load", lambda self, keys: 0)
    with pytest.raises(
        RuntimeError,
        match=r"^PandoOffloadingSpec was tested with vLLM 0\.31\.0, 0\.32\.0 and "
        r"0\.33\.0, and this is vLLM 0\.34\.0, where "
        r"OffloadingManager\.prepare_load takes \(self, keys\) in place of \(self, "
        r"keys, req_context\), LookupResult\.MISS is not there, LookupResult\.HIT is "
        r"not there and 2 more differ; PANDO_ANY_ENGINE_VERSION=1 tries it "
        r"nevertheless$",
    ):
        from pando_kv.vllm.offloading import PandoOffloadingSpec  # noqa: F401
    monkeypatch.setenv("PANDO_ANY_ENGINE_VERSION", "1")
    require_seam("PandoOffloadingSpec")


def test_a_parameter_in_brackets_may_be_there():
    name = f"{__name__}:_in_two_releases"
    assert changes({name: "one [two]"}) == []
    assert changes({name: "[zero] one two"}) == []
    assert changes({name: "one"}) == [
        "_in_two_releases takes (one, two) in place of (one)"
    ]


def _in_two_releases(one, two=0):
    return one, two
