"""The tables of seams: the engine versions, and the engine names each seam imports."""

import ast
import importlib
from pathlib import Path

import pando_kv
import pytest
from pando_kv._seams import SEAMS

PACKAGE = Path(pando_kv.__file__).parent
DOCS = Path(__file__).parents[3] / "docs/engines.md"
FOLDERS = {
    "vllm_connector": "vllm",
    "vllm_offloading": "vllm/offloading",
    "sglang_prefix_cache": "sglang",
    "sglang_linker": "sglang/linker",
}
# The adapters import these modules only where they exist, or before they know whether
# Pando is chosen. The tables therefore leave them out.
NOT_LEANT_ON = {
    "vllm.v1.kv_offload.cpu.host_register",
    "vllm.distributed.device_communicators.cuda_wrapper",
    "vllm.v1.metrics.cache_hit_source",
    "sglang.srt.platforms.cpu",
    "sglang.srt.platforms.cuda",
    "sglang.srt.plugins.hook_registry",
}


def imported_from(engine, folder):
    for file in folder.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.ImportFrom) or node.module in NOT_LEANT_ON:
                continue
            if (node.module or "").partition(".")[0] == engine:
                yield from (f"{node.module}:{each.name}" for each in node.names)


@pytest.mark.parametrize("table", FOLDERS)
def test_each_name_that_is_imported_from_an_engine_is_checked(table):
    names = importlib.import_module(f"pando_kv._seams.{table}").LEANS_ON
    imported = set(imported_from(table.partition("_")[0], PACKAGE / FOLDERS[table]))
    assert imported
    checked = {
        name
        for name in imported
        if any(each == name or each.startswith(f"{name}.") for each in names)
    }
    assert imported - checked == set()


def test_the_documentation_names_the_versions():
    rows = {
        f"| `{name}` | {seam.engine} | {', '.join(seam.versions)} |"
        for name, seam in SEAMS.items()
    }
    assert rows <= set(DOCS.read_text().splitlines())


def test_each_seam_of_an_engine_with_releases_has_a_table():
    tables = {seam.leans_on for seam in SEAMS.values() if seam.leans_on}
    assert tables == set(FOLDERS)
