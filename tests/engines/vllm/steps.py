"""Stand-ins for the parts of vLLM's scheduler that the connector reads."""


class Request:
    """A stand-in for vLLM's Request, with the parts that the connector reads."""

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
    """A stand-in for vLLM's SchedulerOutput, with what the connector reads."""

    def __init__(self, preempted=()):
        self.preempted_req_ids = set(preempted)


def tokens(count, start=0):
    return [(start + i) % 500 for i in range(count)]
