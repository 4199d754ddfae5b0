"""The parts of vLLM's scheduler that the connector reads, for tests without a model."""

from types import SimpleNamespace


class Request:
    """The parts of vLLM's Request that the connector reads."""

    def __init__(self, request_id, tokens, **fields):
        self.request_id = request_id
        self.all_token_ids = list(tokens)
        self.prompt_embeds = None
        self.lora_request = None
        self.cache_salt = None
        self.mm_features = []
        self.num_computed_tokens = 0
        self.num_preemptions = 0
        self.skip_reading_prefix_cache = False
        vars(self).update(fields)

    @property
    def num_tokens(self):
        return len(self.all_token_ids)


class Step:
    """One step of vLLM's scheduler: SchedulerOutput, as far as the connector reads it."""

    def __init__(self, new=(), cached=(), preempted=(), resumed=()):
        self.scheduled_new_reqs = [
            SimpleNamespace(
                req_id=r.request_id, block_ids=(blocks,), num_computed_tokens=c
            )
            for r, blocks, c, _ in new
        ]
        self.scheduled_cached_reqs = SimpleNamespace(
            req_ids=[r.request_id for r, *_ in (*cached, *resumed)],
            new_block_ids=[
                (blocks,) if blocks else None for _, blocks, _, _ in (*cached, *resumed)
            ],
            num_computed_tokens=[c for _, _, c, _ in (*cached, *resumed)],
            resumed_req_ids={r.request_id for r, *_ in resumed},
        )
        self.num_scheduled_tokens = {
            r.request_id: count for r, _, _, count in (*new, *cached, *resumed)
        }
        self.preempted_req_ids = set(preempted)


def tokens(count, start=0):
    return [(start + i) % 500 for i in range(count)]
