"""The digest of a model's configuration, which engines state beside its name."""

import subprocess
import sys

import pytest
from pando_kv._model_digest import ANY_CONFIGURATION, model_digest

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "_name_or_path": "/models/one",
    "transformers_version": "5.19.0",
    "id2label": {0: "LABEL_0"},
    "rope_parameters": {"rope_theta": 10_000.0, "rope_type": "default"},
    "text_config": None,
}


class Configuration:
    """A model's configuration as transformers presents it."""

    def to_dict(self):
        return LLAMA


def test_where_a_model_lies_and_what_read_it_says_nothing_of_its_kv():
    moved = LLAMA | {"_name_or_path": "/srv/two", "transformers_version": "5.20.0"}
    assert model_digest(moved, dtype="float32") == model_digest(LLAMA, dtype="float32")


@pytest.mark.parametrize(
    ("fields", "chosen"),
    [
        ({"rope_parameters": {"rope_theta": 1e6, "rope_type": "default"}}, {}),
        ({"rope_parameters": {"rope_theta": 1e4, "rope_type": "yarn"}}, {}),
        ({"architectures": ["MistralForCausalLM"]}, {}),
        ({"text_config": Configuration()}, {}),
        ({}, {"dtype": "bfloat16"}),
        ({}, {"dtype": "float32", "revision": "7b2f"}),
        ({}, {"dtype": "float32", "quantization": "fp8"}),
    ],
)
def test_what_determines_kv_makes_another_digest(fields, chosen):
    twin = model_digest(LLAMA | fields, **{"dtype": "float32"} | chosen)
    assert twin != model_digest(LLAMA, dtype="float32")


def test_each_process_has_the_same_digest():
    """Sets iterate, and texts hash, in another order in each process."""
    program = (
        "from pando_kv._model_digest import model_digest;"
        "print(model_digest({1: {'a', 'b', 'c'}}))"
    )
    said = {
        subprocess.check_output(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": str(seed)}
        )
        for seed in range(3)
    }
    assert len(said) == 1


def test_an_operator_may_vouch_for_all_configurations(monkeypatch):
    monkeypatch.setenv(ANY_CONFIGURATION, "1")
    assert model_digest(LLAMA) == ""
