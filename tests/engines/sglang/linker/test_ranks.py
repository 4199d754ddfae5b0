"""SGLang's Engine as a user starts it, with two tensor-parallel ranks. Each rank stores
its own heads, and either both ranks take a load or neither does."""

from engines.engine_process import closing_all
from engines.sglang.linker.engines import (
    PATIENT_MS,
    linker_arguments,
    nothing_is_held,
)
from engines.sglang.start import prompt, start_full_engine
from eventually import eventually
from pando_kv import Operator


def test_two_ranks_store_and_find_what_one_computes(
    engines_of, models, pandod, tmp_path
):
    alone = engines_of(tmp_path).start("alone", "plain")
    arguments = linker_arguments(PATIENT_MS) | {"radix_cache_backend": None}
    prompts = [prompt(600, seed=6000), prompt(90, seed=6001)]
    with closing_all([alone]), Operator(pandod.address) as operator:
        expected = alone.ask(prompts=prompts, new=20)["outputs"]
        for name, cached in (("computes", [0, 0]), ("finds", [592, 80])):
            engine = start_full_engine(
                name, models["plain"], pandod, tmp_path, tp_size=2, **arguments
            )
            with closing_all([engine]):
                answer = engine.ask(prompts=prompts, new=20)
                assert answer == {"outputs": expected, "cached": cached}
                eventually(lambda: nothing_is_held(operator))
                engine.close()
        assert operator.check_invariants() == []
        alone.close()
