"""Real engines over a small block memory with a disk tier."""

from engines.vllm.offloading.conftest import nothing_is_held, serve_blocks
from engines.vllm.offloading.engine_alone import CONNECTOR
from engines.vllm.offloading.models import make
from engines.vllm.pool import BLOCK_TOKENS
from engines.vllm.start import prompt
from eventually import eventually
from metrics_page import MetricsPage, free_address
from pando_kv import Client

LENGTHS = [860, 601, 330, 97]
NEW = 12


def one_by_one(engine, prompts):
    said = [engine.ask(prompts=[each], new=NEW) for each in prompts]
    return [each["outputs"][0] for each in said], [each["cached"][0] for each in said]


def test_engines_say_the_same_with_what_is_loaded_from_disk(forks, tmp_path):
    """The same holds after a kill of pandod, when all blocks are only on disk."""
    http = free_address()
    tier = {"block_tier_disk": tmp_path / "tier", "block_tier_disk_bytes": "512MiB"}
    server = serve_blocks(tmp_path, "8MiB", http=http, **tier)

    def figure(name, **labels):
        return int(MetricsPage(http).sum(f"pando_block{name}", **labels))

    def loaded():
        return figure("_tier_copied_blocks_total", direction="load")

    prompts = [prompt(length, seed=5000 + length) for length in LENGTHS]
    given = {"model": str(make("llama", tmp_path / "model"))}
    given |= {"enable_prefix_caching": True}
    alone = forks.start("tier-alone", **given)
    one_by_one(alone, prompts)
    expected, of_its_own = one_by_one(alone, prompts)
    alone.close()

    shared = given | {"patient": True, "pando": server.address, "connector": CONNECTOR}
    first = forks.start("tier-first", **shared)
    one_by_one(first, prompts)
    whole = sum(of_its_own) // BLOCK_TOKENS
    eventually(lambda: figure("_tier_blocks") == figure("s_published_total"))
    kept = figure("_tier_blocks")
    assert kept >= whole
    seed = 0
    while figure("_evictions_total") < 2 * kept:
        seed += 1
        first.ask(prompts=[prompt(800, seed=seed)], new=1)
    first.close()
    assert loaded() == 0
    second = forks.start("tier-second", **shared)
    assert one_by_one(second, prompts) == (expected, of_its_own)
    assert loaded() == whole
    second.close()

    server.kill()
    server.start()
    eventually(lambda: figure("_tier_blocks") >= kept)
    third = forks.start("tier-third", **shared)
    assert one_by_one(third, prompts) == (expected, of_its_own)
    assert loaded() == whole
    third.close()
    with Client(server.address, name="operator") as operator:
        eventually(lambda: nothing_is_held(operator))
        assert operator.check_invariants() == []
    server.close()
