"""A program that decodes payloads with an engine's own types and prints the batches.

usage: decode_with_engine.py FILE PACKAGE < payloads

The program runs with the Python of an engine. FILE is the engine's module of the types,
and is run unchanged. Its imports from PACKAGE, the engine, get stand-ins, because a
whole engine takes a minute to import. Each line of stdin is a payload in hexadecimal;
each line of stdout is its batch as JSON, or {"error": ...}.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import json
import sys
from types import ModuleType
from unittest.mock import MagicMock

import msgspec


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Modules of a package in which every name exists."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] != self._package:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = ModuleType(spec.name)
        module.__getattr__ = self._attribute
        return module

    def exec_module(self, module) -> None:
        """Does nothing, because a stand-in has no code."""

    @staticmethod
    def _attribute(name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        # vLLM's types name its hash of a block.
        return bytes | int if name == "ExternalBlockHash" else MagicMock()


def types_of(file: str, package: str) -> ModuleType:
    sys.meta_path.insert(0, StandIns(package))
    spec = importlib.util.spec_from_file_location("engine_types", file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def main() -> None:
    file, package = sys.argv[1:]
    decoder = msgspec.msgpack.Decoder(type=types_of(file, package).KVEventBatch)
    for line in sys.stdin:
        try:
            batch = msgspec.to_builtins(decoder.decode(bytes.fromhex(line)))
        except msgspec.ValidationError as error:
            batch = {"error": str(error)}
        print(json.dumps(batch))


if __name__ == "__main__":
    main()
