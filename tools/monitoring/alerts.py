"""The alerts, each of which has a page in docs/runbooks."""

from dataclasses import dataclass

import recording_rules as recorded
import thresholds
from catalogue import Catalogue
from queries import Queries
from shares import open_files_ratio

CRITICAL = "critical"
WARNING = "warning"
INFO = "info"

# Prometheus must scrape pandod under a job with such a name: targets that do not answer
# have no other mark.
JOB = '{job=~".*pando.*"}'
PERCENT = "{{ $value | humanizePercentage }}"
DURATION = "{{ $value | humanizeDuration }}"
NUMBER = "{{ $value | humanize }}"
COUNT = '{{ $value | printf "%.0f" }}'


@dataclass(frozen=True)
class Alert:
    name: str
    severity: str
    summary: str
    detail: str
    """The rest of a sentence that begins with the instance's name; it may contain the
    value."""
    value: str
    condition: str
    lasts: str = "0m"
    without_instance: str = ""
    """The sentence for an alert that has no label `instance`."""

    @property
    def description(self) -> str:
        if not self.without_instance:
            return f"{{{{ $labels.instance }}}} {self.detail}"
        return (
            f"{{{{ with $labels.instance }}}}{{{{ . }}}} {self.detail}"
            f"{{{{ else }}}}{self.without_instance}{{{{ end }}}}"
        )


def alerts(catalogue: Catalogue) -> list[Alert]:
    q = recorded.rule_queries(catalogue)
    return [
        *_of_processes(q),
        *_of_the_pool(q),
        *_of_blocks(q),
        *_of_tiers(q),
        *_of_hits(),
        *_of_workers(q),
        *_of_calls(),
    ]


def _of_processes(q: Queries) -> list[Alert]:
    return [
        Alert(
            "PandoDown",
            CRITICAL,
            "A pandod does not answer Prometheus.",
            "has not answered for 2 minutes.",
            # A target that is no longer scraped has no `up`.
            f"(\n  up{JOB}\n  or absent(up{JOB}) - 1\n)",
            "== 0",
            lasts="2m",
            without_instance="Prometheus has had no pandod among its targets for 2 "
            "minutes.",
        ),
        Alert(
            "PandoDraining",
            WARNING,
            "A pandod drains and does not end.",
            "has admitted nothing new for 15 minutes.",
            q.most("pando_draining"),
            "> 0",
            lasts="15m",
        ),
        Alert(
            "PandoRestarting",
            WARNING,
            "A pandod restarts again and again.",
            f"restarted {COUNT} times within 30 minutes.",
            "(\n"
            "  changes(process_start_time_seconds[30m])\n"
            "  and on (job, instance) pando_build_info\n"
            ")",
            f"> {thresholds.RESTARTS}",
        ),
        Alert(
            "PandoInvariantViolation",
            CRITICAL,
            "The self-check found the index in a state that must not be.",
            f"violated {COUNT} invariants within 15 minutes.",
            q.over("15m").increase("pando_invariant_violations_total"),
            "> 0",
        ),
        Alert(
            "PandoPageViolation",
            CRITICAL,
            "Cached pages were written to.",
            f"found {COUNT} cached pages changed within 15 minutes.",
            q.over("15m").increase("pando_page_violations_total"),
            "> 0",
        ),
        Alert(
            "PandoOpenFilesHigh",
            WARNING,
            "A pandod runs out of file descriptors.",
            f"has {PERCENT} of its file descriptors open.",
            open_files_ratio(q),
            f"> {thresholds.OPEN_FILES.warn}",
            lasts="10m",
        ),
    ]


def _of_the_pool(q: Queries) -> list[Alert]:
    return [
        Alert(
            "PandoReservationsRefused",
            CRITICAL,
            "Requests are refused because no page can be had.",
            f"refuses {PERCENT} of the reservations of pages.",
            recorded.REFUSED_RATIO,
            f"> {thresholds.FAILED_RESERVATIONS.bad}",
            lasts="5m",
        ),
        Alert(
            "PandoPoolUnevictable",
            WARNING,
            "Nearly all pages are locked, reserved or quarantined.",
            f"can evict nothing of {PERCENT} of its pool.",
            recorded.UNEVICTABLE_RATIO,
            f"> {thresholds.UNEVICTABLE_PAGES.warn}",
            lasts="10m",
        ),
        Alert(
            "PandoQuotaRejections",
            WARNING,
            "A class of namespaces is refused at its cap.",
            f"refuses {NUMBER} requests a second of class {{{{ $labels.ns_class }}}}.",
            q.rate("pando_quota_rejections_total", ["ns_class"]),
            "> 0",
            lasts="15m",
        ),
        Alert(
            "PandoQuarantineStuck",
            WARNING,
            "Processes that lost their session hold pages for as long as they live.",
            f"has {NUMBER} pages that a living process may still write to.",
            q.now("pando_quarantine_held_pages"),
            "> 0",
            lasts="5m",
        ),
        Alert(
            "PandoEvictionThrash",
            WARNING,
            "Pages are evicted soon after their last use.",
            f"evicts pages that were used {DURATION} ago.",
            recorded.EVICTION_IDLE,
            f"< {thresholds.IDLE_BEFORE_EVICTION.warn}",
            lasts="15m",
        ),
    ]


def _of_blocks(q: Queries) -> list[Alert]:
    return [
        Alert(
            "PandoBlocksRefused",
            WARNING,
            "Engines find no room for blocks that they want to store.",
            f"has no room for {NUMBER} blocks a second.",
            q.rate("pando_blocks_no_room_total"),
            "> 0",
            lasts="10m",
        ),
        Alert(
            "PandoBlocksOverdue",
            WARNING,
            "Engines reserve blocks and do not write them in time.",
            f"gave {COUNT} blocks that were not written in time to others within 15 "
            "minutes.",
            q.over("15m").increase("pando_blocks_overdue_total"),
            "> 0",
        ),
        Alert(
            "PandoBlockQuarantineStuck",
            WARNING,
            "Processes that lost their session hold blocks for as long as they live.",
            f"has {NUMBER} blocks that a living process may still write to.",
            q.now("pando_block_quarantined"),
            "> 0",
            lasts="10m",
        ),
    ]


def _of_tiers(q: Queries) -> list[Alert]:
    return [
        Alert(
            "PandoTierFails",
            WARNING,
            "Copies of pages cannot be written or read, or are damaged.",
            f"failed to {{{{ $labels.step }}}} {COUNT} copies of pages on the tier "
            "{{ $labels.tier }} within 15 minutes.",
            q.over("15m").increase("pando_tier_failures_total", ["tier", "step"]),
            "> 0",
        ),
        Alert(
            "PandoBlockTierFails",
            WARNING,
            "Copies of blocks cannot be written or read, or are damaged.",
            f"failed to {{{{ $labels.step }}}} {COUNT} copies of blocks on the tier "
            "{{ $labels.tier }} within 15 minutes.",
            q.over("15m").increase("pando_block_tier_failures_total", ["tier", "step"]),
            "> 0",
        ),
        Alert(
            "PandoTierRefused",
            WARNING,
            "A shared store does not work, so that machines do not share pages.",
            "has refused the shared store ({{ $labels.direction }}) for 10 minutes, as "
            "it failed again and again.",
            q.now("pando_tier_remote_refused", ["direction"]),
            "> 0",
            lasts="10m",
        ),
        Alert(
            "PandoBlockTierRefused",
            WARNING,
            "A shared store does not work, so that machines do not share blocks.",
            "has refused the shared store of blocks ({{ $labels.direction }}) for 10 "
            "minutes, as it failed again and again.",
            q.now("pando_block_tier_remote_refused", ["direction"]),
            "> 0",
            lasts="10m",
        ),
        Alert(
            "PandoMoverMissing",
            WARNING,
            "A pando-mover is missing, so that nothing is stored in tiers or loaded.",
            "has had no pando-mover for {{ $labels.device }} for 5 minutes.",
            q.now("pando_tier_mover_present", ["device"]),
            "== 0",
            lasts="5m",
        ),
    ]


def _of_hits() -> list[Alert]:
    return [
        Alert(
            "PandoHitRatioDrop",
            WARNING,
            "The hit ratio fell to less than half of yesterday's.",
            f"finds {PERCENT} of what it found in the day before.",
            "(\n"
            f"  {recorded.HIT_RATIO}\n"
            f"  / (avg_over_time({recorded.HIT_RATIO}[1d] offset 1h) > 0)\n"
            "  and on (job, instance)\n"
            f"  {recorded.QUERY_RATE} > {thresholds.TOKENS_PER_SECOND_THAT_COUNT}\n"
            ")",
            f"< {thresholds.HIT_RATIO_KEPT}",
            lasts="30m",
        ),
        Alert(
            "PandoPoolTooSmall",
            INFO,
            "A larger pool would find much more.",
            f"computes {PERCENT} of the tokens again because they were evicted.",
            recorded.REFETCHED_RATIO,
            f"> {thresholds.HITS_LOST_TO_SIZE.warn}",
            lasts="1h",
        ),
    ]


def _of_workers(q: Queries) -> list[Alert]:
    return [
        Alert(
            "PandoLockLeak",
            WARNING,
            "A lock is held far longer than a request takes.",
            f"has a lock that has been held for {DURATION}.",
            q.most("pando_oldest_lock_age_seconds"),
            f"> {thresholds.OLDEST_LOCK.warn}",
            lasts="5m",
        ),
        Alert(
            "PandoSessionsLost",
            WARNING,
            "Workers die, or lose their connection, again and again.",
            f"lost {COUNT} sessions within 15 minutes.",
            q.over("15m").increase("pando_sessions_ended_total", reason="lost"),
            f"> {thresholds.LOST_SESSIONS}",
        ),
        Alert(
            "PandoWaitsTimeOut",
            WARNING,
            "Requests wait in vain for pages that another worker computes.",
            f"lets {PERCENT} of the waits end without the pages.",
            recorded.TIMED_OUT_RATIO,
            f"> {thresholds.WAITS_TIMED_OUT}",
            lasts="15m",
        ),
        Alert(
            "PandoEventsDropped",
            WARNING,
            "A watcher of cache events is too slow for them.",
            f"drops {NUMBER} events a second.",
            q.rate("pando_events_dropped_total"),
            "> 0",
            lasts="10m",
        ),
    ]


def _of_calls() -> list[Alert]:
    return [
        Alert(
            "PandoCallsFail",
            CRITICAL,
            "Calls fail through no fault of the caller.",
            f"fails {PERCENT} of its calls.",
            recorded.FAILED_CALL_RATIO,
            f"> {thresholds.FAILED_CALLS.bad}",
            lasts="10m",
        ),
        Alert(
            "PandoCallsSlow",
            WARNING,
            "Calls that each request makes are slow.",
            f"takes {DURATION} for the slowest 1 % of {{{{ $labels.grpc_method }}}}.",
            f'{recorded.CALL_P99}{{grpc_method=~"MatchPrefix|Insert"}}',
            f"> {thresholds.CALL_P99.warn}",
            lasts="15m",
        ),
        Alert(
            "PandoIndexContended",
            WARNING,
            "Calls wait for each other at the index.",
            f"lets the slowest 1 % of operations wait {DURATION} for the index.",
            recorded.LOCK_WAIT_P99,
            f"> {thresholds.LOCK_WAIT_P99.warn}",
            lasts="15m",
        ),
    ]
