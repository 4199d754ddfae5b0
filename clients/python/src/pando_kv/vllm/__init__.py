"""The KV connector that runs vLLM over Pando.

An operator chooses it with `--kv-transfer-config`; docs/engines-vllm.md has an example.
vLLM finds this package by its entry point. Importing the package loads nothing of vLLM.
"""

from __future__ import annotations

from typing import Any

from pando_kv._seams import require_seam

CONNECTOR = "PandoConnector"


def register() -> None:
    """Registers the connector with vLLM, and wraps the function that makes vLLM's
    configuration. vLLM calls it by the entry point `vllm.general_plugins`."""
    from vllm.distributed.kv_transfer.kv_connector.factory import KVConnectorFactory
    from vllm.engine.arg_utils import EngineArgs

    if CONNECTOR in KVConnectorFactory._registry:
        return
    from pando_kv.vllm.pages.pool_size import asking_the_pool

    KVConnectorFactory.register_connector(CONNECTOR, "pando_kv.vllm", CONNECTOR)
    EngineArgs.create_engine_config = asking_the_pool(EngineArgs.create_engine_config)


def __getattr__(name: str) -> Any:
    """Imports the connector when vLLM asks for it: after the entry point has registered
    it, or with `"kv_connector_module_path": "pando_kv.vllm"`. Raises RuntimeError if
    this vLLM is not one that was tested."""
    if name == CONNECTOR:
        require_seam(CONNECTOR)
        from pando_kv.vllm.pages.connector import PandoConnector

        return PandoConnector
    raise AttributeError(name)
