"""The external cache linker through which SGLang uses Pando as a store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from sglang.srt.mem_cache.hicache_storage import PoolHitPolicy, PoolName, PoolTransfer
from sglang.srt.mem_cache.unified_cache.unified_cache_linker import (
    LayerWiseLoadCounter,
    UnifiedCacheLinker,
)
from sglang.srt.runtime_context import get_serving
from sglang.srt.utils import get_device_module

from pando_kv.blocks import BlockKeys, KindSpec
from pando_kv.sglang.linker.budget import StepBudget
from pando_kv.sglang.linker.copies import make_copies, pin
from pando_kv.sglang.linker.identity import (
    attention_rank,
    model_identity,
    pool_identity,
)
from pando_kv.sglang.linker.loads import Load, Loader, Part
from pando_kv.sglang.linker.lookups import Lookups, Wanted
from pando_kv.sglang.linker.offloads import Job, Offered, Offloader
from pando_kv.sglang.linker.pages import PoolPages
from pando_kv.sglang.linker.pools import device_pool_group
from pando_kv.sglang.linker.store import KEY_BYTES, Binding, Store

_WAIT_MS = "wait_ms"
_DEFAULT_WAIT_MS = 20.0


class PandoLinker(UnifiedCacheLinker):  # type: ignore[misc]
    """The linker of one rank, made and owned by SGLang. The scheduler's thread alone
    calls it. Threads that the linker owns copy pages and keep the session with pandod.

    A step of the engine waits for pandod for at most twice `wait_ms`. Once pandod has
    failed to answer, no step waits at all until pandod answers again. A queued load
    does not depend on pandod: its blocks are locked, and are read without pandod.
    """

    def __init__(
        self,
        server_args: Any,
        params: Any,
        *,
        components: Any,
        extra_config: dict[str, Any] | None = None,
        forward_stream: Any = None,
    ) -> None:
        patience = _patience(extra_config or {})
        _refuse_what_is_not_supported(server_args)
        self.forward_stream = forward_stream
        self._group = device_pool_group(params, components)
        self.pools = self._group.entry_map
        self._pages = {name: PoolPages(entry) for name, entry in self.pools.items()}
        self._kinds = {name: at for at, name in enumerate(self.pools)}
        self._params = params
        rank, self._ranks = attention_rank(params)
        # If all ranks have the same bytes, only rank 0 stores them.
        self._stores = rank == 0 or not self._group.rank_replicated
        self._model = model_identity(
            server_args, replicated=self._group.rank_replicated, params=params
        )
        self._label = f"sglang {get_serving().served_model_name}" + (
            "" if self._ranks == 1 else f" rank {rank} of {self._ranks}"
        )
        self._are_weights_mixed = False
        self.layer_done_counter = LayerWiseLoadCounter(self._group.num_layers)
        if PoolName.MAMBA in self.pools:
            params.req_to_token_pool.register_layer_transfer_counter(
                self.layer_done_counter
            )
        device = next(iter(self.pools.values())).kv_buffer[0].device
        loading, storing = make_copies(device), make_copies(device)
        specs = self._specs(get_serving().weight_version)
        self._store = Store(self._label, specs, patience, partial(pin, device))
        self._budget = StepBudget(patience)
        self._lookups = Lookups(self._store, self._budget)
        self._queued: dict[str, Load] = {}
        self._loader = Loader(
            self._store, self.layer_done_counter, loading, self._group.num_layers
        )
        self._offloader = Offloader(self._store, storing)
        self.key_before: Callable[[], str | None] = lambda: None
        """Returns the key of the page before the node that is offered. A hook sets it
        before each offer."""

    # Lookups, with which the scheduler finds out what the store has.

    def lookup(self, rid: str, transfers: list[PoolTransfer]) -> list[int]:
        expanded = self._group.resolve_transfers(transfers)
        if not expanded or self._are_weights_mixed:
            return []
        keys = next(each.keys for each in transfers if each.name == PoolName.KV)
        wanted = []
        for each in expanded:
            if each.hit_policy == PoolHitPolicy.BLOCK_GROUPS:
                return []
            is_window = each.hit_policy == PoolHitPolicy.TRAILING_PAGES
            trailing = max(1, len(each.keys)) if is_window else 0
            wanted.append(Wanted(self._kinds[each.name], trailing))
        return self._lookups.restorable(rid, keys, wanted)

    # Loads. A load is queued only if all its blocks are locked, so it needs nothing
    # more from pandod.

    def load(self, rid: str, transfers: list[PoolTransfer]) -> bool:
        load = self._acquire(transfers)
        self._lookups.forget(rid)
        if not self._all_ranks(load is not None):
            self._give_back(load)
            return False
        assert load is not None
        self._queued[rid] = load
        return True

    def start_layer_wise_loading(self) -> int:
        if not self._queued:
            return -1
        loads = list(self._queued.values())
        self._queued.clear()
        index: int = self.layer_done_counter.update_producer()
        ready = get_device_module().Event()
        ready.record()
        self._loader.start(index, loads, ready)
        return index

    def finish_layer_wise_loading(self, counter_index: int) -> bool:
        return bool(self.layer_done_counter.finish(counter_index))

    def cancel_queued_load(self, rid: str) -> bool:
        load = self._queued.pop(rid, None)
        self._give_back(load)
        return load is not None

    # Offloads. SGLang is never told that a node is stored: see offloads.py.

    def offload(
        self, transfers: list[PoolTransfer], session_id: str | None = None
    ) -> bool:
        expanded = self._group.resolve_transfers(transfers, allow_partial=True)
        if not expanded or self._are_weights_mixed:
            return False
        kinds = frozenset(self._kinds[each.name] for each in expanded)
        last = bytes.fromhex(expanded[0].keys[-1])
        if not self._stores or self._offloader.has(last, kinds):
            # A job without work completes in its turn, as the job on the other ranks
            # does.
            self._offloader.offer(Job(is_done=True))
            return True
        node = next(each.keys for each in transfers if each.name == PoolName.KV)
        before = self.key_before() or ""
        offered = [self._offered(each, node, before) for each in expanded]
        self._offloader.offer(Job(offered, self.record_offload_ready()))
        return True

    def num_completed_offloads(self) -> int:
        # SGLang calls this method once in each step.
        self._budget.begin_step()
        self._lookups.begin_step()
        return self._offloader.completed()

    def pop_completed_offload(self) -> bool:
        self._offloader.pop()
        return False

    # Changes of the weights, and the end.

    def expect_other_weights(self, version: str) -> None:
        """Prepares for new weights, of this version; called when the weights change or
        may have changed. Pages of old and new weights are in SGLang's tree until SGLang
        flushes it, so nothing is stored or found until then. After the flush, only
        blocks of this version are found."""
        self._are_weights_mixed = True
        self._lookups.clear()
        self._store.declare(self._specs(version))

    def reset(self) -> None:
        """Ends all loads and offloads after SGLang has flushed its tree. Stored blocks
        remain, because other engines share them."""
        for rid in list(self._queued):
            self.cancel_queued_load(rid)
        self._loader.wait()
        self._offloader.reset()
        self._lookups.clear()
        self.layer_done_counter.reset()
        self._are_weights_mixed = False

    def close(self) -> None:
        self.reset()
        self._loader.close()
        self._offloader.close()
        self._store.close()

    def _specs(self, weights: str) -> list[KindSpec]:
        return [
            KindSpec(
                identity=pool_identity(self._model, weights, name.value, pages),
                label=f"{self._label} {name.value}",
                key_bytes=KEY_BYTES,
                shard_bytes=pages.block_bytes,
                shards=1,
            )
            for name, pages in self._pages.items()
        ]

    def _acquire(self, transfers: list[PoolTransfer]) -> Load | None:
        # SGLang's tree may have kept pages of one pool and lost those of another.
        expanded = self._group.resolve_transfers(
            transfers, allow_partial=True, allow_missing_kv=True
        )
        binding = self._store.binding
        if not expanded or binding is None or self._are_weights_mixed:
            return None
        keys = [
            BlockKeys(
                binding.kinds[self._kinds[each.name]].number,
                bytes.fromhex("".join(each.keys)),
            )
            for each in expanded
        ]
        acquired = self._budget.ask(lambda: self._store.acquire(binding, keys))
        if acquired is None:
            return None
        places, locks = acquired
        return Load(self._parts(expanded, binding, places), binding, locks)

    def _parts(
        self, transfers: list[PoolTransfer], binding: Binding, places: Any
    ) -> list[Part]:
        parts, at = [], 0
        for each in transfers:
            pages = self._pages[each.name]
            end = at + len(each.keys)
            blocks = binding.addresses(places[at:end])
            parts.append(Part(pages, each.host_indices, blocks))
            at = end
        return parts

    def _offered(
        self, transfer: PoolTransfer, node: Sequence[str], before: str
    ) -> Offered:
        """Returns the offer of one pool's pages. `node` has the keys of all pages of
        the node. A pool of windows has only the last of these pages. `before` is the
        key of the page before the node."""
        pages = self._pages[transfer.name]
        first = len(node) - len(transfer.keys)
        if transfer.name == PoolName.MAMBA:
            # A state depends on no state before it.
            before = ""
        elif first > 0:
            before = node[first - 1]
        return Offered(
            self._kinds[transfer.name],
            pages,
            transfer.host_indices,
            bytes.fromhex("".join(transfer.keys)),
            bytes.fromhex(before),
        )

    def _give_back(self, load: Load | None) -> None:
        if load is not None:
            self._store.release(load.binding, load.locks)

    def _all_ranks(self, is_so: bool) -> bool:
        """Returns whether `is_so` holds on all ranks. All ranks must call it, and all
        get the same answer."""
        if self._ranks == 1:
            return is_so
        answer = torch.tensor([int(is_so)], dtype=torch.int)
        params = self._params
        torch.distributed.all_reduce(
            answer,
            op=torch.distributed.ReduceOp.MIN,
            group=params.attn_tp_cache_group or params.tp_cache_group,
        )
        return bool(answer.item())


def _patience(extra_config: dict[str, Any]) -> float:
    """Returns the seconds for which a question waits for pandod. Raises ValueError if
    the configuration is invalid."""
    unknown = set(extra_config) - {_WAIT_MS}
    if unknown:
        raise ValueError(
            f"linker_extra_config has {sorted(unknown)}; PandoLinker knows {_WAIT_MS}"
        )
    wait = extra_config.get(_WAIT_MS, _DEFAULT_WAIT_MS)
    if not isinstance(wait, int | float) or not 0 < wait <= 60_000:
        raise ValueError(f"{_WAIT_MS} is {wait!r}; must be above 0, at most 60000")
    return wait / 1000


def _refuse_what_is_not_supported(server_args: Any) -> None:
    for is_so, what in (
        (server_args.pp_size > 1, "--pp-size above 1"),
        (server_args.dcp_size > 1, "--dcp-size above 1"),
        (server_args.disaggregation_mode != "null", "--disaggregation-mode"),
    ):
        if is_so:
            raise ValueError(f"PandoLinker does not support {what}")
