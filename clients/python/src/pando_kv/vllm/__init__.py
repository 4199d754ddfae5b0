"""vLLM over Pando: a KV connector.

Chosen by `--kv-transfer-config`, of which docs/engines-vllm.md has an example. vLLM
finds this package by its entry point. Importing it loads nothing of vLLM.
"""

from __future__ import annotations

from typing import Any

from pando_kv._seams import require_seam

CONNECTOR = "PandoConnector"


def register() -> None:
    """Entry point `vllm.general_plugins`: names the connector."""
    from vllm.distributed.kv_transfer.kv_connector.factory import KVConnectorFactory

    if CONNECTOR not in KVConnectorFactory._registry:
        KVConnectorFactory.register_connector(CONNECTOR, "pando_kv.vllm", CONNECTOR)


def __getattr__(name: str) -> Any:
    """vLLM loads the connector by it, of the entry point or of
    `"kv_connector_module_path": "pando_kv.vllm"`."""
    if name == CONNECTOR:
        require_seam(CONNECTOR)
        from pando_kv.vllm.connector import PandoConnector

        return PandoConnector
    raise AttributeError(name)
