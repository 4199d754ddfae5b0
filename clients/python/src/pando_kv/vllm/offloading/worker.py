"""The part of the offloading spec in vLLM's workers: copies between vLLM's KV memory
and the block memory.

vLLM does not expect a load or a store to fail, so none of them waits for pandod. The
block memory is mapped before the scheduler may use it, and the memory of a pandod that
has ended stays mapped until the loads from it are done.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from vllm.config import get_current_vllm_config_or_none
from vllm.distributed.kv_transfer import (
    get_kv_transfer_group,
    has_kv_transfer_group,
)
from vllm.utils.hashing import get_hash_fn_by_name
from vllm.v1.kv_offload.base import (
    CanonicalKVCaches,
    GPULoadStoreSpec,
    LoadStoreSpec,
    OffloadingWorker,
    TransferResult,
)
from vllm.v1.kv_offload.config import OffloadingConfig

from pando_kv import Client, SessionLink
from pando_kv._block_calls import attach_memory
from pando_kv._session import Session
from pando_kv.blocks import KindSpec
from pando_kv.errors import PandoError
from pando_kv.vllm.offloading.block_places import BlockPlaces
from pando_kv.vllm.offloading.following import Following
from pando_kv.vllm.offloading.host_copies import HostCopies
from pando_kv.vllm.offloading.identity import (
    engine_digest,
    kind_identity,
    readiness,
)
from pando_kv.vllm.offloading.latent_on_cpu import refuse_latent_on_cpu
from pando_kv.vllm.offloading.layout import lay_out
from pando_kv.vllm.offloading.zeroed_blocks import refuse_zeroed_blocks

_log = logging.getLogger("pando_kv.vllm")

_FIRST_SECONDS = 60.0
_LINK_SECONDS = 5.0
# Seconds after which an old memory is unmapped even if no step has used the new one.
# During that time the scheduler has handed out no place in the old memory.
_OLD_MEMORY_SECONDS = 60.0


class PandoWorker(OffloadingWorker):  # type: ignore[misc]
    """The object in one vLLM worker that copies blocks. The worker owns it, and only
    the worker's thread calls it; threads of its own map and unmap memory."""

    def __init__(
        self,
        client: Client,
        is_changed: threading.Event,
        config: OffloadingConfig,
        kv_caches: CanonicalKVCaches,
    ) -> None:
        """Maps the block memory and opens the kinds. `is_changed` is set when the
        client's session is lost. Raises RuntimeError if pandod gives no memory within a
        minute, and ValueError for a model or layout that is not supported."""
        vllm_config = get_current_vllm_config_or_none()
        if vllm_config is None:
            raise RuntimeError("vLLM does not tell its workers their configuration")
        refuse_latent_on_cpu(vllm_config)
        # OffloadingConnector stores the blocks of a finished request only in the next
        # step, when vLLM may have zeroed them already.
        if has_kv_transfer_group():
            cache = get_kv_transfer_group()._kv_cache_config
            refuse_zeroed_blocks(vllm_config, cache)
        self._client = client
        self._config = config
        self._layout = lay_out(config, kv_caches)
        self._digest = engine_digest(vllm_config, config, self._layout)
        algorithm = vllm_config.cache_config.prefix_caching_hash_algo
        self._key_bytes = len(get_hash_fn_by_name(algorithm)(b""))
        self._attached: Any = None  # The memory of the present session.
        self._mutex = threading.Lock()
        self._copies: dict[int, HostCopies] = {}  # By epoch, older ones first.
        self._links: dict[int, SessionLink | None] = {}  # By the scheduler's session.
        self._not_copied: list[TransferResult] = []
        self._memory = Following(client, is_changed, self._attach)
        self._memory.first(_FIRST_SECONDS)

    def submit_store(
        self, job_id: int, src_spec: GPULoadStoreSpec, dst_spec: LoadStoreSpec
    ) -> bool:
        assert isinstance(dst_spec, BlockPlaces)
        copies = self._copies_for(dst_spec)
        if copies is None:
            # The places are those of a pandod that has ended, so the blocks will not
            # be published, and need not be copied.
            self._not_copied.append(TransferResult(job_id, True))
        else:
            copies.store(job_id, src_spec, dst_spec)
        return True

    def submit_load(
        self,
        job_id: int,
        src_spec: LoadStoreSpec,
        dst_spec: GPULoadStoreSpec,
        expedited: bool = False,
    ) -> bool:
        """Starts a load. vLLM sets `expedited` since 0.33 when the step waits for the
        load; every load here starts at once."""
        assert isinstance(src_spec, BlockPlaces)
        copies = self._copies_for(src_spec)
        assert copies is not None, "a load from a memory that is not mapped"
        copies.load(job_id, src_spec, dst_spec)
        return True

    def get_finished(self) -> list[TransferResult]:
        """Returns the transfers that are done, and unmaps memory older than the memory
        that was used last. vLLM calls it at the end of each step, when all loads of the
        step are submitted."""
        done, self._not_copied = self._not_copied, []
        with self._mutex:
            for copies in self._copies.values():
                done += copies.take_finished()
        if len(self._copies) > 1 and self._used is not None:
            self._drop_those_before(self._used)
        return done

    def wait(self, job_ids: set[int]) -> None:
        with self._mutex:
            for copies in self._copies.values():
                copies.wait(job_ids)

    def shutdown(self) -> None:
        self._memory.close()
        for copies in self._copies.values():
            copies.close()
        self._copies.clear()
        self._client.close()

    _used: int | None = None
    """The epoch of the memory that the last load or store used."""

    def _copies_for(self, places: BlockPlaces) -> HostCopies | None:
        self._used = places.epoch
        if places.session_id not in self._links:
            self._links[places.session_id] = None
            self._in_background(lambda: self._link_to(places.session_id))
        return self._copies.get(places.epoch)

    def _attach(self, session: Session) -> bool | None:
        """Maps the session's block memory, opens its kinds and announces that this rank
        is ready. Returns None if it must be tried again. Following's thread calls it.
        """
        memory = self._client.attach_memory()
        if memory.epoch != session.epoch:
            return None
        kinds = self._client.open_kinds(
            [self._kind(n) for n in range(len(self._layout.groups))]
        )
        if memory.epoch not in self._copies:
            strides = [kind.shard_stride for kind in kinds]
            copies = _copies_of(self._layout)(self._layout, memory, strides)
            with self._mutex:
                self._copies[memory.epoch] = copies
            if len(self._copies) > 1:
                self._in_background(
                    lambda: self._drop_those_before(memory.epoch), _OLD_MEMORY_SECONDS
                )
        self._attached = memory
        wanted = readiness(
            self._config.engine_id, self._config.parallel.rank, self._digest
        )
        (ready,) = self._client.open_kinds([wanted])
        # Another label is that of an earlier engine with this id. pandod drops its kind
        # when it ends that engine's session.
        return True if ready.spec.label == wanted.label else None

    def _kind(self, group: int) -> KindSpec:
        config = self._config.groups[group]
        return KindSpec(
            identity=kind_identity(self._digest, config.group_id),
            label=f"vllm {self._config.model.name} group {config.group_id}",
            key_bytes=self._key_bytes,
            shard_bytes=self._layout.shard_bytes(group),
            shards=self._layout.shards,
        )

    def _link_to(self, session_id: int) -> None:
        """Links this process to the scheduler's session. pandod gives no block of
        that session to others until the link is closed, which happens when a newer
        session is linked or this process ends."""
        try:
            call = attach_memory(self._client._sessions, session_id)
            grant = self._client._connection.send(call)
            link = SessionLink(grant.memory_socket, grant.token, _LINK_SECONDS)
        except PandoError as error:
            _log.debug("pandod: no link to the scheduler's session: %s", error)
            # The next transfer of that session tries again.
            self._links.pop(session_id, None)
            return
        older = [link for link in self._links.values() if link is not None]
        self._links = {session_id: link}
        for each in older:
            each.close()

    def _drop_those_before(self, epoch: int) -> None:
        """Unmaps the memory of each earlier epoch that has no copies under way."""
        with self._mutex:
            epochs = list(self._copies)
            for each in epochs[: epochs.index(epoch) if epoch in epochs else 0]:
                if self._copies[each].is_idle:
                    self._copies.pop(each).close()

    def _in_background(self, do: Callable[[], None], after: float = 0.0) -> None:
        timer = threading.Timer(after, do)
        timer.daemon = True
        timer.start()


def _copies_of(layout: Any) -> Any:
    if layout.groups[0][0].pages.device.type == "cpu":
        return HostCopies
    from pando_kv.vllm.offloading.device_copies import DeviceCopies

    return DeviceCopies
