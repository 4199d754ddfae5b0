"""The dashboard that tells how fast calls are, and which parts take their time."""

import thresholds
from dashboard import Dashboard, Row
from panels import Graph, Heatmap, Panel, Query, Stat
from queries import Queries
from shares import failed_call_ratio

HANDLING = "grpc_server_handling_seconds"
CORE = "pando_core_op_duration_seconds"
LOCK_WAIT = "pando_core_lock_wait_seconds"
BY_METHOD = ["grpc_method"]
# Streams are left out, because they live as long as their workers.
UNARY = "unary"


def calls(q: Queries) -> Dashboard:
    return Dashboard(
        uid="pando-calls",
        title="Pando / RPC and core",
        description="The calls of workers: how many, how fast, and why they fail.",
        rows=[
            Row("At a glance", _at_a_glance(q)),
            Row("Calls", _calls(q)),
            Row("Time of calls", _times(q)),
            Row("Time in the index", _core(q)),
            Row("Self-checks", _checks(q)),
        ],
    )


def _at_a_glance(q: Queries) -> list[Panel]:
    return [
        Stat(
            "Calls a second",
            "Calls that were answered, of all methods.",
            "reqps",
            [Query(q.rate("grpc_server_handled_total"))],
        ),
        Stat(
            "Failed through no fault of the caller",
            "The share of the calls with the codes Unknown, Internal or Unavailable.",
            "percentunit",
            [Query(failed_call_ratio(q))],
            level=thresholds.FAILED_CALLS,
        ),
        Stat(
            "MatchPrefix p50",
            "Half of these calls were handled faster.",
            "s",
            [Query(q.quantile(0.5, HANDLING, grpc_method="MatchPrefix"))],
        ),
        Stat(
            "MatchPrefix p99",
            "99 % of these calls were handled faster; without transport and waits.",
            "s",
            [Query(q.quantile(0.99, HANDLING, grpc_method="MatchPrefix"))],
            level=thresholds.CALL_P99,
        ),
        Stat(
            "Wait for the index p99",
            "99 % of the operations waited less for the index's lock.",
            "s",
            [Query(q.quantile(0.99, LOCK_WAIT))],
            level=thresholds.LOCK_WAIT_P99,
        ),
        Stat(
            "Found by self-checks",
            "Since the servers started: invariants of the index that were violated (a "
            "defect of pandod), cached pages that were written to (one of a worker).",
            "short",
            [
                Query(q.now("pando_invariant_violations_total"), "invariants"),
                Query(q.now("pando_page_violations_total"), "pages"),
            ],
            level=thresholds.VIOLATIONS,
        ),
    ]


def _calls(q: Queries) -> list[Panel]:
    running = "\n- ".join(
        q.now(f"grpc_server_{what}_total", BY_METHOD, grpc_type=UNARY)
        for what in ("started", "handled")
    )
    return [
        Graph(
            "Calls by method",
            "Calls answered a second.",
            "reqps",
            [Query(q.rate("grpc_server_handled_total", BY_METHOD), "{{grpc_method}}")],
        ),
        Graph(
            "Failed calls by code",
            "Calls a second that were not answered with OK. ResourceExhausted: no "
            "pages; InvalidArgument, NotFound, FailedPrecondition: a worker errs, or "
            "its session was lost; Unavailable: the server drains.",
            "reqps",
            [
                Query(
                    q.rate("grpc_server_handled_total", ["grpc_code"], grpc_code="!OK")
                    + " > 0",
                    "{{grpc_code}}",
                )
            ],
        ),
        Graph(
            "Running calls",
            "Calls that have arrived and are not answered yet: those that wait for "
            "another worker's pages.",
            "short",
            [Query(running, "{{grpc_method}}")],
            stacked=True,
        ),
    ]


def _times(q: Queries) -> list[Panel]:
    def by_method(share: float) -> list[Query]:
        times = q.quantile(share, HANDLING, BY_METHOD, grpc_type=UNARY)
        return [Query(times, "{{grpc_method}}")]

    return [
        Graph(
            "Time of calls p50",
            "Half of the calls of each method were handled faster; without transport "
            "and waits.",
            "s",
            by_method(0.5),
        ),
        Graph(
            "Time of calls p99",
            "99 % of the calls of each method were handled faster; without transport "
            "and waits.",
            "s",
            by_method(0.99),
            level=thresholds.CALL_P99,
        ),
        Heatmap(
            "Times of MatchPrefix",
            "How many calls took how long in the handler.",
            "s",
            [Query(q.buckets(HANDLING, grpc_method="MatchPrefix"), "{{le}}")],
        ),
    ]


def _core(q: Queries) -> list[Panel]:
    return [
        Graph(
            "Operations of the index",
            "Operations a second.",
            "ops",
            [Query(q.rate(f"{CORE}_count", ["op"]), "{{op}}")],
            width=6,
        ),
        Graph(
            "Time of operations p99",
            "99 % of the operations were faster, the wait for the lock included.",
            "s",
            [Query(q.quantile(0.99, CORE, ["op"]), "{{op}}")],
            width=6,
        ),
        Graph(
            "Wait for the index p99",
            "99 % of the operations waited less for the index's lock.",
            "s",
            [Query(q.quantile(0.99, LOCK_WAIT), "p99")],
            width=6,
            level=thresholds.LOCK_WAIT_P99,
        ),
        Graph(
            "Where the time of MatchPrefix goes",
            "The mean time of a call in its handler, and in it that in the index. What "
            "a worker measures beyond the first is transport.",
            "s",
            [
                Query(q.mean(HANDLING, grpc_method="MatchPrefix"), "handler"),
                Query(q.mean(CORE, op="match"), "index"),
            ],
            width=6,
        ),
    ]


def _checks(q: Queries) -> list[Panel]:
    return [
        Graph(
            "Violated invariants",
            "Rules of the index that the self-check found broken, a second. None with "
            "--check-invariants-every 0.",
            "ops",
            [Query(q.rate("pando_invariant_violations_total"), "violated")],
            width=12,
        ),
        Graph(
            "Verified pages",
            "With --verify-pages: cached pages a second that were compared with what "
            "they held when they were inserted, and those that had changed.",
            "ops",
            [
                Query(q.rate("pando_verified_pages_total"), "compared"),
                Query(q.rate("pando_page_violations_total"), "changed"),
            ],
            width=12,
        ),
    ]
