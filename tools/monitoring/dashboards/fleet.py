"""The dashboard of all servers, with one line for each."""

import thresholds
from dashboard import Dashboard, Row
from panels import Graph, Query, Table
from queries import Queries
from shares import hit_ratio, infinite_hit_ratio, refused_ratio, unevictable_ratio

OVERVIEW = "/d/pando-overview?var-datasource=${datasource}&var-instance=${__value.raw}"


def fleet(q: Queries) -> Dashboard:
    each = q.by_instance()
    return Dashboard(
        uid="pando-fleet",
        title="Pando / Fleet",
        description="All servers side by side; click an instance for its overview.",
        rows=[
            Row("Servers", [_servers(each)]),
            Row("Side by side", _side_by_side(each)),
            Row("Events for routers", _events(each)),
        ],
    )


def _servers(each: Queries) -> Table:
    start = each.most("process_start_time_seconds")
    p99 = each.quantile(0.99, "grpc_server_handling_seconds", grpc_method="MatchPrefix")
    return Table(
        "Servers",
        "One line for each server, as of now.",
        "short",
        [
            Query(each.most("pando_build_info", ["version"])),
            Query(f"time() - {start}", "Running for", "s"),
            Query(each.now("pando_pool_capacity_bytes"), "Pool", "bytes"),
            Query(hit_ratio(each), "Hit ratio", "percentunit"),
            Query(infinite_hit_ratio(each), "Without limit", "percentunit"),
            Query(
                unevictable_ratio(each),
                "Cannot be evicted",
                "percentunit",
                thresholds.UNEVICTABLE_PAGES,
            ),
            Query(
                refused_ratio(each),
                "Refused",
                "percentunit",
                thresholds.FAILED_RESERVATIONS,
            ),
            Query(each.rate("pando_evicted_pages_total"), "Evicted pages/s"),
            Query(each.rate("grpc_server_handled_total"), "Calls", "reqps"),
            Query(p99, "MatchPrefix p99", "s", thresholds.CALL_P99),
            Query(each.now("pando_sessions"), "Workers"),
            Query(
                each.now("pando_draining"),
                "Draining",
                "short",
                thresholds.DRAINING_SERVERS,
            ),
        ],
        labels={"job": "Job", "instance": "Instance", "version": "Version"},
        links={"instance": OVERVIEW},
    )


def _side_by_side(each: Queries) -> list[Graph]:
    return [
        Graph(
            "Hit ratio",
            "The share of the tokens asked for that were cached.",
            "percentunit",
            [Query(hit_ratio(each), "{{instance}}")],
            most=1,
        ),
        Graph(
            "Pool that cannot be evicted",
            "The share of the pages that are locked, reserved or quarantined.",
            "percentunit",
            [Query(unevictable_ratio(each), "{{instance}}")],
            level=thresholds.UNEVICTABLE_PAGES,
            most=1,
        ),
        Graph(
            "Evicted pages",
            "Pages a second that left the cache.",
            "short",
            [Query(each.rate("pando_evicted_pages_total"), "{{instance}}")],
        ),
    ]


def _events(each: Queries) -> list[Graph]:
    return [
        Graph(
            "Subscriptions",
            "Of routers, to the events of --kv-events.",
            "short",
            [Query(each.now("pando_kv_event_subscribers"), "{{instance}}")],
        ),
        Graph(
            "Announcements",
            "Times a second that all that is cached was announced: when a router came, "
            "or asked for what is not held any more.",
            "ops",
            [Query(each.rate("pando_kv_event_announcements_total"), "{{instance}}")],
        ),
        Graph(
            "Dropped frames",
            "Frames of events a second that some router did not get because it reads "
            "too slowly. It asks for them later.",
            "ops",
            [Query(each.rate("pando_kv_event_dropped_frames_total"), "{{instance}}")],
        ),
    ]
