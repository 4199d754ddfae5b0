"""The dashboard of the sessions: their pages and locks, their waits for each other, and
the workers that were lost."""

import thresholds
from dashboard import Dashboard, Row
from panels import Graph, Panel, Query, Stat
from queries import Queries


def sessions(q: Queries) -> Dashboard:
    return Dashboard(
        uid="pando-sessions",
        title="Pando / Sessions and locks",
        description="Attached workers, their locks, and waits for each other.",
        rows=[
            Row("At a glance", _at_a_glance(q)),
            Row("Sessions", _sessions(q)),
            Row("By worker", _by_worker(q)),
            Row("Locks", _locks(q)),
            Row("Waits for another worker's pages", _waits(q)),
            Row("Repeats and events", _others(q)),
        ],
    )


def _at_a_glance(q: Queries) -> list[Panel]:
    return [
        Stat(
            "Workers",
            "Sessions that live now: one for each attached worker process.",
            "short",
            [Query(q.now("pando_sessions"))],
        ),
        Stat(
            "Lost workers",
            "Sessions in the time shown that ended because the worker died or stayed "
            "away.",
            "short",
            [Query(_in_range(q, "pando_sessions_ended_total", reason="lost"))],
            level=thresholds.LOST_WORKERS,
        ),
        Stat(
            "Locks",
            "Locks held now: about one for each request that runs.",
            "short",
            [Query(q.now("pando_locks"))],
        ),
        Stat(
            "Oldest lock",
            "How long the oldest lock has been held. Requests are shorter: an old lock "
            "is one that a worker forgot.",
            "s",
            [Query(q.most("pando_oldest_lock_age_seconds"))],
            level=thresholds.OLDEST_LOCK,
        ),
        Stat(
            "Waiting requests",
            "Requests that wait now for pages which another worker computes.",
            "short",
            [Query(q.now("pando_pending_matches"))],
        ),
        Stat(
            "Quarantined pages",
            "Pages of lost workers that may still be written to.",
            "short",
            [Query(q.now("pando_pool_pages", state="quarantined"))],
            level=thresholds.QUARANTINED_PAGES,
        ),
    ]


def _in_range(q: Queries, counter: str, **labels: str) -> str:
    return q.over("$__range").increase(counter, **labels)


def _sessions(q: Queries) -> list[Panel]:
    each = q.by_instance()
    return [
        Graph(
            "Workers by server",
            "Sessions that live, by the pandod that they are attached to.",
            "short",
            [Query(each.now("pando_sessions"), "{{instance}}")],
            stacked=True,
        ),
        Graph(
            "Sessions opened and ended",
            "Sessions a second: opened, closed by the worker, or lost.",
            "ops",
            [
                Query(q.rate("pando_sessions_opened_total"), "opened"),
                Query(q.rate("pando_sessions_ended_total", ["reason"]), "{{reason}}"),
            ],
        ),
        Graph(
            "Pages in quarantine",
            "Pages of lost workers, and those of them that a living process holds: "
            "these become free when it ends, the others after the quarantine time.",
            "short",
            [
                Query(
                    each.now("pando_pool_pages", state="quarantined"), "{{instance}}"
                ),
                Query(each.now("pando_quarantine_held_pages"), "{{instance}}, held"),
            ],
        ),
    ]


def _by_worker(q: Queries) -> list[Panel]:
    """Returns the panels of the workers, by the names that workers give themselves."""

    def of(what: str) -> list[Query]:
        return [Query(q.now(f"pando_worker_{what}", ["worker"]), "{{worker}}")]

    return [
        Graph(
            "Locks by worker",
            "Locks that each worker holds: about one for each request that it runs.",
            "short",
            of("locks"),
            stacked=True,
        ),
        Graph(
            "Reserved pages by worker",
            "Pages that each worker computes, or keeps without publishing them.",
            "short",
            of("reserved_pages"),
            stacked=True,
        ),
        Graph(
            "Sessions by worker",
            "Sessions with the name of each worker. One that comes and goes is a "
            "worker that starts again and again.",
            "short",
            of("sessions"),
            stacked=True,
        ),
    ]


def _locks(q: Queries) -> list[Panel]:
    each = q.by_instance()
    return [
        Graph(
            "Locks held",
            "Each keeps the prefix of a request from eviction.",
            "short",
            [Query(each.now("pando_locks"), "{{instance}}")],
            width=6,
            stacked=True,
        ),
        Graph(
            "Locks taken and ended",
            "Locks a second: taken; released by their owner, with its session, by an "
            "operator.",
            "ops",
            [
                Query(q.rate("pando_locks_taken_total"), "taken"),
                Query(q.rate("pando_locks_ended_total", ["reason"]), "{{reason}}"),
            ],
            width=6,
        ),
        Graph(
            "How long locks were held",
            "Of the locks that ended: 50 % and 99 % were held for less.",
            "s",
            [
                Query(q.quantile(0.5, "pando_lock_hold_seconds"), "p50"),
                Query(q.quantile(0.99, "pando_lock_hold_seconds"), "p99"),
            ],
            width=6,
        ),
        Graph(
            "Oldest lock",
            "How long the oldest lock of each server has been held.",
            "s",
            [Query(each.most("pando_oldest_lock_age_seconds"), "{{instance}}")],
            width=6,
            level=thresholds.OLDEST_LOCK,
        ),
    ]


def _waits(q: Queries) -> list[Panel]:
    return [
        Graph(
            "Waits by outcome",
            "Waits that ended, a second: the pages were published, which saved their "
            "computation; their owner gave up; or they did not come in time.",
            "reqps",
            [
                Query(
                    q.rate("pando_pending_waits_ended_total", ["outcome"]),
                    "{{outcome}}",
                )
            ],
            stacked=True,
        ),
        Graph(
            "Length of waits",
            "50 % and 99 % of the waits were shorter.",
            "s",
            [
                Query(q.quantile(0.5, "pando_pending_wait_seconds"), "p50"),
                Query(q.quantile(0.99, "pando_pending_wait_seconds"), "p99"),
            ],
        ),
        Graph(
            "Waiting requests",
            "Requests that wait for pages which another worker computes.",
            "short",
            [Query(q.now("pando_pending_matches"), "waiting")],
        ),
    ]


def _others(q: Queries) -> list[Panel]:
    return [
        Graph(
            "Repeated calls",
            "Calls a second that were answered with the answer of the first call with "
            "their request_id: workers repeat what they got no answer to.",
            "reqps",
            [Query(q.rate("pando_repeated_requests_total"), "repeated")],
            width=12,
        ),
        Graph(
            "Events that watchers missed",
            "Cache events a second that watchers were too slow for. Each then gets a "
            "new snapshot.",
            "ops",
            [Query(q.rate("pando_events_dropped_total"), "missed")],
            width=12,
        ),
    ]
