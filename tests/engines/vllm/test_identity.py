"""The parts of a request that keep its KV apart from the KV of others."""

from types import SimpleNamespace

import numpy as np
from engines.vllm.steps import Request
from pando_kv import Namespace
from pando_kv.vllm.identity import Tokens, namespace_of


def test_the_lora_and_the_salt_are_the_namespace():
    lora = SimpleNamespace(lora_name="sql", lora_path="/loras/sql")
    other = SimpleNamespace(lora_name="sql", lora_path="/loras/another")
    names = [
        namespace_of(Request("1", [], lora_request=lora)),
        namespace_of(Request("1", [], lora_request=other)),
        namespace_of(Request("1", [], cache_salt="a")),
        namespace_of(Request("1", [], lora_request=lora, cache_salt="a")),
        namespace_of(Request("1", [], lora_request=lora), "later"),
        namespace_of(Request("1", [])),
    ]
    assert len(set(names)) == len(names)
    assert names[-1] is None
    assert names[2] == Namespace(cache_salt="a")


def test_a_name_that_is_too_long_is_a_digest():
    def salted(salt):
        return namespace_of(Request("1", [], cache_salt=salt)).cache_salt

    assert len(salted("x" * 10_000)) < 256
    assert salted("x" * 10_000) != salted("x" * 10_001)
    assert salted("short") == "short"


def test_images_in_the_middle_of_a_prompt_tell_prompts_apart():
    def of(identifier):
        place = SimpleNamespace(offset=10, length=30)
        feature = SimpleNamespace(identifier=identifier, mm_position=place)
        return Tokens(Request("1", [9] * 64, mm_features=[feature]))

    cat, dog = of("cat").upto(64), of("dog").upto(64)
    assert (cat[:10] == 9).all() and (cat[40:] == 9).all()
    assert (cat[10:40] != dog[10:40]).all()
    # The tokens do not depend on the steps in which the caller asks for them.
    again = of("cat")
    again.upto(17)
    again.upto(33)
    np.testing.assert_array_equal(again.upto(64), cat)
