"""vLLM over Pando: a KV connector.

Chosen by `--kv-transfer-config`, of which docs/engines-vllm.md has an example. vLLM
finds this package by its entry point. Importing it loads nothing of vLLM.
"""

from __future__ import annotations

from typing import Any

from pando_kv._seams import require_seam

CONNECTOR = "PandoConnector"


def register() -> None:
    """Entry point `vllm.general_plugins`: names the connector, and hooks in where vLLM
    makes its configuration."""
    from vllm.distributed.kv_transfer.kv_connector.factory import KVConnectorFactory
    from vllm.engine.arg_utils import EngineArgs

    if CONNECTOR in KVConnectorFactory._registry:
        return
    from pando_kv.vllm.pages.pool_size import asking_the_pool

    KVConnectorFactory.register_connector(CONNECTOR, "pando_kv.vllm", CONNECTOR)
    EngineArgs.create_engine_config = asking_the_pool(EngineArgs.create_engine_config)


def __getattr__(name: str) -> Any:
    """vLLM loads the connector by it, of the entry point or of
    `"kv_connector_module_path": "pando_kv.vllm"`."""
    if name == CONNECTOR:
        require_seam(CONNECTOR)
        from pando_kv.vllm.pages.connector import PandoConnector

        return PandoConnector
    raise AttributeError(name)
