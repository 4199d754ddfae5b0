"""Checks of the parts of SGLang that the adapter leans on, and its refusals."""

from types import SimpleNamespace

import pytest
import sglang
import torch
from engines.models import LAYERS, LAYOUT, make_model
from pando_kv._seams import SEAMS, changes_of, require_seam
from pando_kv.sglang import SEAM

SGLANG = [name for name, seam in SEAMS.items() if seam.engine == "SGLang"]


@pytest.mark.parametrize("name", SGLANG)
def test_this_sglang_is_as_it_was_tested(name):
    if sglang.__version__ in SEAMS[name].versions:
        assert changes_of(name) == []
        require_seam(name)


def test_another_version_can_be_tried(monkeypatch):
    monkeypatch.delenv("PANDO_ANY_ENGINE_VERSION", raising=False)
    with pytest.raises(RuntimeError, match=r"0\.5\.23, and this is SGLang 0\.6\.0"):
        require_seam(SEAM, "0.6.0")
    monkeypatch.setenv("PANDO_ANY_ENGINE_VERSION", "1")
    require_seam(SEAM, "0.6.0")


def test_the_linker_of_another_version_is_refused(monkeypatch):
    """SGLang 0.5.22 can load only its own linkers."""
    is_tested = sglang.__version__ in SEAMS["PandoLinker"].versions
    where = "" if is_tested else ", where .* is not there, .*"
    monkeypatch.delenv("PANDO_ANY_ENGINE_VERSION", raising=False)
    monkeypatch.setattr("sglang.__version__", "0.5.22")
    with pytest.raises(
        RuntimeError,
        match=r"^PandoLinker was tested with SGLang 0\.5\.23, and this is SGLang "
        rf"0\.5\.22{where}; PANDO_ANY_ENGINE_VERSION=1 tries it nevertheless$",
    ):
        from pando_kv.sglang.linker import PandoLinker  # noqa: F401


def test_a_linker_of_anothers_is_left_alone(monkeypatch):
    """The check does not import PandoLinker, which may not load in this SGLang."""
    from pando_kv.sglang.hooks import _linker_of

    monkeypatch.setattr("sglang.__version__", "0.6.0")
    anothers = SimpleNamespace(linker=SimpleNamespace(cache_linker=object()))
    assert _linker_of(anothers) is None


@pytest.fixture
def context():
    """Returns a context for SGLang's prefix cache that Pando supports in all parts."""
    args = SimpleNamespace(
        enable_lmcache=False,
        enable_flexkv=False,
        enable_memory_saver=False,
        speculative_algorithm=None,
        disaggregation_mode="null",
        pp_size=1,
        dp_size=1,
        dcp_size=1,
        schedule_policy="lpm",
    )
    return SimpleNamespace(
        server_args=args,
        disable_radix_cache=False,
        is_hybrid_swa=False,
        is_hybrid_ssm=False,
        is_dsa=False,
        enable_hierarchical_cache=False,
    )


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("speculative_algorithm", "EAGLE", "--speculative-algorithm"),
        ("disaggregation_mode", "prefill", "--disaggregation-mode"),
        ("pp_size", 2, "--pp-size"),
        ("dp_size", 2, "--dp-size"),
        ("dcp_size", 2, "--dcp-size"),
        ("enable_lmcache", True, "--enable-lmcache"),
        ("enable_flexkv", True, "--enable-flexkv"),
        ("schedule_policy", "dfs-weight", "dfs-weight"),
        ("enable_memory_saver", True, "--enable-memory-saver"),
        ("is_hybrid_swa", True, "sliding windows; blocks do: PandoLinker"),
        ("is_hybrid_ssm", True, "state-space"),
        ("is_dsa", True, "sparse attention"),
        ("enable_hierarchical_cache", True, "--enable-hierarchical-cache"),
        ("disable_radix_cache", True, "--disable-radix-cache"),
    ],
)
def test_what_does_not_go_together_is_refused(context, field, value, said):
    from pando_kv.sglang.support import refuse_what_is_not_supported

    args = context.server_args
    setattr(args if hasattr(args, field) else context, field, value)
    with pytest.raises(ValueError, match=said):
        refuse_what_is_not_supported(context)


def test_another_pool_than_one_of_keys_and_values_is_refused(context):
    """SGLang makes such a pool for latent attention."""
    from pando_kv.sglang.support import refuse_what_is_not_supported
    from sglang.srt.mem_cache.memory_pool import MLATokenToKVPool

    of_mla = MLATokenToKVPool.__new__(MLATokenToKVPool)
    context.params = SimpleNamespace(
        token_to_kv_pool_allocator=SimpleNamespace(get_kvcache=lambda: of_mla)
    )
    with pytest.raises(ValueError, match="SGLang has made a MLATokenToKVPool"):
        refuse_what_is_not_supported(context)


def test_another_version_is_refused_where_the_cache_is_made(context, monkeypatch):
    from pando_kv.sglang.hooks import _make_prefix_cache

    monkeypatch.delenv("PANDO_ANY_ENGINE_VERSION", raising=False)
    monkeypatch.setattr("sglang.__version__", "0.6.0")
    with pytest.raises(
        RuntimeError, match=r"this is SGLang 0\.6\.0; PANDO_ANY_ENGINE_VERSION=1 tries"
    ):
        _make_prefix_cache(context)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("is_quantized_kv_cache", True, "a quantized KV cache"),
        ("store_dtype", torch.uint8, "--kv-cache-dtype torch.float32"),
        ("kv_cache_layout", "hnd", "KV layout 'hnd'"),
        ("v_head_dim", 64, "values of another size than keys"),
        ("post_capture_active", True, "after graph capture"),
        ("page_size", 1, "--page-size 1"),
    ],
)
def test_a_pool_that_is_not_as_pandos_is_refused(field, value, said):
    from pando_kv.sglang.kv_pool import PandoKVPool

    pool = SimpleNamespace(
        is_quantized_kv_cache=False,
        dtype=torch.float32,
        store_dtype=torch.float32,
        kv_cache_layout="nhd",
        head_dim=32,
        v_head_dim=32,
        post_capture_active=False,
        page_size=16,
    )
    PandoKVPool._refuse_what_is_not_supported(pool)
    setattr(pool, field, value)
    with pytest.raises(ValueError, match=said):
        PandoKVPool._refuse_what_is_not_supported(pool)


def test_models_that_differ_in_their_rope_alone_are_not_the_same(tmp_path):
    from pando_kv.sglang.kv_pool import model_digest_of
    from sglang.srt.server_args import ServerArgs

    def digest(name, **configuration):
        model = make_model(tmp_path / name, **configuration)
        return model_digest_of(ServerArgs(model_path=str(model), device="cpu"))

    yarn = {
        "rope_type": "yarn",
        "factor": 4.0,
        "original_max_position_embeddings": 2048,
    }
    one = digest("one")
    assert one
    assert digest("the same in another folder") == one
    assert digest("rope_theta", rope_theta=500_000.0) != one
    assert digest("yarn", rope_scaling=yarn) != one
    assert digest("dtype", torch_dtype="bfloat16") != one


def test_a_pool_in_other_memory_is_refused(roomy, monkeypatch):
    from pando_kv.sglang import ADDRESS, attachment, kv_pool

    monkeypatch.setenv(ADDRESS, roomy.address)
    monkeypatch.setattr(
        kv_pool, "get_serving", lambda: SimpleNamespace(served_model_name="tiny")
    )
    monkeypatch.setattr(kv_pool, "get_server_args", lambda: None)
    monkeypatch.setattr(kv_pool, "model_digest_of", lambda _: "")
    monkeypatch.setattr(
        kv_pool, "get_parallel", lambda: SimpleNamespace(tp_rank=0, tp_size=1)
    )
    engine = SimpleNamespace(
        layer_num=LAYERS,
        head_num=LAYOUT["heads"],
        head_dim=LAYOUT["head_size"],
        dtype=torch.float32,
        page_size=16,
        size=511 * 16,
        device="cuda",
    )
    with pytest.raises(ValueError, match="memory of cpu, and the engine computes on"):
        kv_pool.PandoKVPool._attach(engine)
    attachment.session().close()
    attachment.session.cache_clear()


@pytest.mark.parametrize("text", ["-1", "600001", "nan", "soon"])
def test_a_wait_that_is_none_is_refused(text, monkeypatch):
    from pando_kv.sglang import WAIT_MS
    from pando_kv.sglang.attachment import wait

    assert wait() == 0
    monkeypatch.setenv(WAIT_MS, "1500")
    assert wait() == 1.5
    monkeypatch.setenv(WAIT_MS, text)
    with pytest.raises(ValueError, match=f"PANDO_WAIT_MS is .*{text}.*; must be"):
        wait()
