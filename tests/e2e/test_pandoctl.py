"""pandoctl against a real pandod: each verb, each format."""

import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from eventually import eventually
from pando_kv import Client, Namespace, SnapshotEnd
from pandoctl import Pandoctl
from pandod_process import PAGE_TOKENS, POOL_PAGES, Pandod

OK, FAILED, USAGE, UNREACHABLE, UNHEALTHY = range(5)
SALT = "a secret"
FIRST_TOKEN = 77_000_000  # looks like nothing else that is printed


@pytest.fixture
def pandod(start_pandod: Callable[..., Pandod]) -> Pandod:
    return start_pandod(model="a model")


@pytest.fixture
def ctl(pandod: Pandod) -> Pandoctl:
    return Pandoctl(pandod.address)


@pytest.fixture
def client(pandod: Pandod) -> Iterator[Client]:
    with Client(pandod.address, name="the worker") as worker:
        yield worker


def prompt(pages: int, first: int = FIRST_TOKEN) -> np.ndarray:
    return np.arange(first, first + pages * PAGE_TOKENS, dtype=np.uint32)


def publish(client: Client, tokens: np.ndarray, **options: object) -> None:
    client.insert(tokens, client.allocate_pages(tokens.size // PAGE_TOKENS), **options)


def spelled(tokens: np.ndarray) -> list[str]:
    return [str(token) for token in tokens]


def rows(text: str) -> list[list[str]]:
    """The cells of a table, without its header; no cell here has a space."""
    return [line.split() for line in text.splitlines()[1:]]


# Listings.


def test_status_shows_the_pool_and_what_is_in_it(ctl, client):
    publish(client, prompt(3))
    text = ctl("status").out
    assert f"pages     {POOL_PAGES - 4} free, 0 reserved, 3 evictable" in text
    assert "health    SERVING\n" in text
    assert "model     a model\n" in text
    assert "index     1 node in 1 namespace\n" in text


def test_status_is_the_same_in_json_and_yaml(ctl, client):
    publish(client, prompt(3))
    answer = ctl("status", "-o", "json").json()
    assert answer["address"] == ctl.environment["PANDO_ADDRESS"]
    assert answer["health"] == "SERVING"
    assert answer["stats"]["pages"]["evictable"] == 3
    assert answer["stats"]["counters"]["inserts"] == "1"
    assert answer["pool"]["layout"]["page_tokens"] == PAGE_TOKENS
    yaml = ctl("status", "-o", "yaml").out
    assert '\nhealth: "SERVING"\n' in yaml
    assert "\n    evictable: 3\n" in yaml
    assert '\n    inserts: "1"\n' in yaml


def test_quota_classes_are_part_of_the_status(start_pandod, tmp_path):
    config = tmp_path / "pando.yaml"
    config.write_text("quotas: [{class: gold, extra_key: 'gold*', cap_pages: 8}]")
    text = Pandoctl(start_pandod(config=config).address)("status").out
    assert rows(text.split("\n\n")[1]) == [
        ["gold", "0", "8", "0", "0", "0s", "0"],
        ["(others)", "0", "-", "0", "0", "0s", "0"],
    ]


def test_namespaces_are_listed_without_salts(ctl, client):
    publish(client, prompt(1), namespace=Namespace("lora", SALT))
    publish(client, prompt(3))
    answer = ctl("namespaces")
    assert [row[1:] for row in rows(answer.out)] == [
        ["-", "no", "no", "3", "0", "1"],
        ["lora", "yes", "no", "1", "0", "1"],
    ]
    assert SALT not in answer.out
    limited = ctl("namespaces", "--limit", 1).out
    assert limited.endswith("1 of 2\n")
    listed = ctl("namespaces", "-o", "json").json()
    assert listed["total"] == 2
    assert listed["namespaces"][1]["extra_key"] == "lora"


# Controls of one byte and of two, and marks that turn the direction of writing.
HIDDEN = "\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"


@pytest.mark.parametrize("output", ["table", "json", "yaml"])
def test_a_name_cannot_write_to_the_terminal(start_pandod, output):
    evil = "\x1b[31mred\n\u009b31m\u202eevil\u2066"
    pandod = start_pandod(model=evil)
    ctl = Pandoctl(pandod.address)
    with Client(pandod.address, name=evil) as client:
        publish(client, prompt(1), namespace=Namespace(evil))
        with client.lock(prompt(1), namespace=Namespace(evil)):
            for verb in ("status", "namespaces", "sessions", "locks", "tree", "top"):
                once = ["-i", 0.01] if verb == "top" else []
                shown = ctl(verb, "-o", output, *once)
                assert shown.code == OK
                assert not re.search(f"[{HIDDEN}]", shown.out), verb
                if output == "json":
                    json.loads(shown.out)
        if output == "table":
            text = ctl("namespaces").out
            assert "\\033[31mred\\n\\u009b31m\\u202eevil\\u2066" in text
        if output == "json":
            [listed] = ctl("namespaces", "-o", "json").json()["namespaces"]
            assert listed["extra_key"] == evil


def test_a_name_of_another_script_is_shown_as_it_is(ctl, client):
    publish(client, prompt(1), namespace=Namespace("caf\u00e9-\u65e5\u672c"))
    for output in ("table", "json", "yaml"):
        assert "caf\u00e9-\u65e5\u672c" in ctl("namespaces", "-o", output).out


def test_sessions_and_their_locks_are_listed(ctl, client):
    publish(client, prompt(3))
    client.allocate_pages(2)
    client.attach_pool()
    with client.lock(prompt(2)), client.lock(prompt(3)):
        (session,) = ctl("sessions", "-o", "json").json()["sessions"]
        assert session.pop("age_ms").isdigit()
        assert session == {
            "session_number": 1,
            "client_name": "the worker",
            "locks": 2,
            "reserved_pages": 2,
            "is_connected": True,
            "is_attached": True,
            "locked_blocks": 0,
            "reserved_blocks": 0,
            "is_internal": False,
        }
        assert "1  the worker" in ctl("sessions").out
        locks = ctl("locks", "-o", "json").json()
        assert [lock["locked_tokens"] for lock in locks["locks"]] == [
            2 * PAGE_TOKENS,
            3 * PAGE_TOKENS,
        ]
        assert ctl("locks", "--limit", 1).out.endswith("1 of 2\n")
        assert ctl("locks", "--session", 1, "-o", "json").json()["total"] == 2


def test_the_tree_is_indented_by_depth(ctl, client):
    publish(client, prompt(3))
    publish(client, np.concatenate([prompt(1), prompt(2, first=5)]))
    publish(client, prompt(1), namespace=Namespace("lora", SALT))
    with client.lock(prompt(3)):
        lines = ctl("tree").out.splitlines()
    spans = [line[: len(line) - len(line.lstrip())] + line.split()[0] for line in lines]
    assert spans[:2] == ["namespace", "  0..16"]
    assert sorted(spans[2:4]) == ["    16..48", "    16..48"]
    assert spans[4:] == ["namespace", "  0..16"]
    assert lines[4] == "namespace 2 extra_key lora salted"
    assert ", 2 hits, 1 lock, " in lines[1]


def test_a_tree_is_cut_off_and_says_so(ctl, client):
    for i in range(3):
        publish(client, prompt(1, first=1000 * i))
    assert ctl("tree", "--limit", 1).out.endswith("and 2 more nodes\n")
    dump = ctl("tree", "--namespace", 1, "-o", "json").json()
    assert [node["pages"] for node in dump["nodes"]] == [1, 1, 1]
    assert dump["omitted"] == 0


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (("tree", "--namespace", 99), "namespace 99"),
        (("tree", "--namespace", 0), "namespace 0"),
        (("flush", "--namespace", 99, "--yes"), "namespace 99"),
        (("locks", "--session", 99), "session 99"),
        (("locks", "--session", 0), "session 0"),
    ],
)
def test_a_number_that_nothing_has_is_an_error(ctl, client, command, kind):
    publish(client, prompt(1))
    refused = ctl(*command)
    assert (refused.code, refused.out) == (FAILED, "")
    assert f"there is no {kind}; 'pandoctl {kind.split()[0]}s' lists" in refused.err
    assert client.stats().pages.evictable == 1


def test_empty_lists_say_so(ctl):
    assert ctl("namespaces").out == "no namespace has anything cached or locked\n"
    assert ctl("sessions").out == "no sessions\n"
    assert ctl("locks").out == "no locks\n"
    assert ctl("tree").out == "nothing is cached\n"
    assert ctl("locks", "-o", "json").json() == {"locks": [], "total": 0}


# Prompts.


def test_a_prompt_is_taken_from_arguments_a_file_or_stdin(ctl, client, tmp_path):
    publish(client, prompt(2))
    tokens = prompt(3)
    file = tmp_path / "tokens"
    file.write_text("\n".join(spelled(tokens)))
    expected = f"matched  {2 * PAGE_TOKENS} of {tokens.size} tokens\npages    2\n"
    assert ctl("match", *tokens).out == expected
    assert ctl("match", "--tokens-file", file).out == expected
    assert ctl("match", stdin=json.dumps(tokens.tolist())).out == expected
    assert ctl("match", stdin=", ".join(spelled(tokens))).out == expected
    answer = ctl("match", *tokens, "-o", "json").json()
    assert answer["matched_tokens"] == 2 * PAGE_TOKENS
    assert len(answer["page_ids"]) == 2


def test_a_prompt_is_looked_up_in_its_namespace(ctl, client, tmp_path):
    publish(client, prompt(1), namespace=Namespace("lora", SALT))
    salt = tmp_path / "salt"
    salt.write_text(SALT + "\n")
    where = ["--extra-key", "lora", "--cache-salt-file", salt]
    assert ctl("match", *where, *prompt(1)).out.startswith("matched  16 of")
    assert ctl("match", "--extra-key", "lora", *prompt(1)).out.startswith("matched  0")


def test_looking_counts_as_no_query(ctl, client):
    publish(client, prompt(1))
    ctl("match", *prompt(1))
    ctl("explain", *prompt(1))
    assert client.stats().counters.query_tokens == 0


def test_a_miss_is_explained(ctl, client):
    publish(client, prompt(3))
    publish(client, prompt(3), namespace=Namespace("other"))
    other = prompt(3)
    other[PAGE_TOKENS + 5] = 1
    text = ctl("explain", *other).out
    assert "matched  16 of 48 tokens\n" in text
    assert "DIVERGED: the cache continues with other tokens after 21\n" in text
    ctl("flush", "--namespace", 1, "--yes")
    with client.lock(prompt(1), namespace=Namespace("other")):
        text = ctl("explain", *prompt(3)).out
        assert "EVICTED: the next page was evicted " in text
        assert "for: flush\n" in text
        assert "more in  namespaces 2\n" in text
        held = ctl("explain", "--extra-key", "other", *prompt(3)).out
        assert "COMPLETE: all of it is cached\n" in held
        assert "1  the worker" in held
    answer = ctl("explain", "-o", "json", *prompt(3)).json()
    assert answer["end"] == "MATCH_END_EVICTED"
    assert answer["evicted_for"] == "EVICTION_REASON_FLUSH"


@pytest.mark.parametrize("arguments", [(), ("-o", "json"), ("-o", "yaml")])
def test_tokens_are_never_printed(ctl, client, arguments):
    publish(client, prompt(3))
    watch = ctl.start("watch", "--snapshot", "-n", 2, *arguments)
    shown = [ctl(verb, *prompt(3), *arguments) for verb in ("match", "explain")]
    shown += [ctl(verb, *arguments) for verb in ("tree", "status", "locks")]
    shown += [ctl("match", *prompt(1), f"{FIRST_TOKEN}x", *arguments)]
    everything = watch.communicate()[0] + "".join(a.out + a.err for a in shown)
    assert str(FIRST_TOKEN)[:5] not in everything


def test_a_token_that_is_none_is_named_by_its_place(ctl):
    refused = ctl("match", 1, 2, 2**32)
    assert refused.code == USAGE
    assert "token 3 is not a number from 0 to 4294967295" in refused.err
    refused = ctl("match", 1, "hello")
    assert refused.code == USAGE
    assert "'hello', in the place of token 2, is not a number" in refused.err
    assert ctl("match", "--tokens-file", "/nowhere").code == USAGE
    assert ctl.on_terminal("match").code == USAGE


# Events.


def test_stat_shows_rates_of_the_interval(ctl, client):
    publish(client, prompt(1))
    with (
        ctl.start("stat", "-i", 0.2, "-n", 100, "-o", "json") as stat,
        ThreadPoolExecutor(1) as reader,
    ):
        # On a busy machine there are intervals in which nothing was called.
        lines = map(json.loads, stat.stdout)
        found = reader.submit(next, filter(lambda line: line["hit_tokens"], lines))
        while not found.done():
            client.match_prefix(prompt(2))
        stat.terminate()
    line = found.result()
    assert line["matches_per_second"] > 0
    assert line["hit_tokens"] * 2 == line["query_tokens"] > 0
    assert line["pages"]["evictable"] == 1
    assert line["sessions"] == 1


def test_stat_has_a_header_and_a_line_for_each_interval(ctl):
    text = ctl("stat", "-i", 0.01, "-n", 21).out
    lines = text.splitlines()
    assert len(lines) == 23
    assert lines[0] == lines[21]
    assert lines[0].split()[:2] == ["hit%", "match/s"]
    assert lines[1].split()[:2] == ["-", "0.0"]


def test_top_draws_screens_on_a_terminal_and_one_elsewhere(ctl, client):
    publish(client, prompt(32))
    with client.lock(prompt(16)):
        live = ctl.on_terminal("top", "-i", 0.01, "-n", 3).out
        once = ctl("top", "-i", 0.01).out
        answer = ctl("top", "-i", 0.01, "-o", "json").json()
    assert live.count("\x1b[H\x1b[J") == 3
    assert "\x1b" not in once
    assert "[" + 16 * "#" + 16 * "=" + 32 * "." + "]" in once
    assert answer["locks"]["total"] == answer["sessions"]["total"] == 1
    assert answer["rates"]["matches_per_second"] == 0
    for table in ("NAMESPACE  EXTRA_KEY", "SESSION  CLIENT", "1  the worker"):
        assert table in once


def test_watch_shows_what_comes_and_goes(ctl, client):
    watch = ctl.start("watch", "-n", 2)
    with client.watch_events() as events:
        while not isinstance(next(events), SnapshotEnd):
            pass
        while watch.poll() is None:
            publish(client, prompt(2), namespace=Namespace("lora"))
            next(events)
            client.evict(2)
            next(events)
    texts = {line.split(" ", 1)[1] for line in watch.communicate()[0].splitlines()}
    stored, removed = sorted(texts, reverse=True)
    assert stored.startswith("stored 2 blocks of 16 tokens, extra_key lora, up to ")
    assert removed.startswith("removed 2 blocks for request, from ")


def test_watch_shows_what_is_cached_already_when_asked(ctl, client):
    publish(client, prompt(2))
    lines = ctl("watch", "--snapshot", "-n", 3, "-o", "json").out.splitlines()
    cleared, stored, end = map(json.loads, lines)
    assert "cleared" in cleared and "snapshot_end" in end
    assert len(stored["stored"]["block_hashes"]) == 2
    assert "tokens" not in stored["stored"]
    yaml = ctl("watch", "--snapshot", "-n", 3, "-o", "yaml").out
    assert yaml.count("---\n") == 3


# Changes by operators.


def test_pages_are_evicted(ctl, client):
    publish(client, prompt(3))
    assert ctl("evict", 2, "--yes").out == "evicted 2 pages\n"
    assert ctl("evict", 9, "-y", "-o", "json").json() == {"evicted_pages": 1}


def test_a_flush_is_of_one_namespace_or_of_all(ctl, client):
    publish(client, prompt(1), namespace=Namespace("a"))
    publish(client, prompt(2), namespace=Namespace("b"))
    with client.lock(prompt(1), namespace=Namespace("b")):
        assert ctl("flush", "--namespace", 1, "-y", "-o", "json").json() == {
            "evicted_pages": 1,
            "protected_pages": 0,
        }
        text = ctl("flush", "--all", "--yes").out
    assert text == "evicted 1 page; 1 locked, which stay\n"
    assert ctl("flush", "--yes").code == USAGE
    assert ctl("flush", "--all", "--namespace", 1, "--yes").code == USAGE


def test_locks_are_taken_from_a_session(ctl, client):
    publish(client, prompt(1))
    client.lock(prompt(1))
    assert ctl("locks", "--release", 1, "--yes").out == "released 1 lock\n"
    assert client.stats().locks == 0
    unknown = ctl("locks", "--release", 7, "--yes")
    assert (unknown.code, "7 is not the number of a session" in unknown.err) == (
        FAILED,
        True,
    )


def test_the_policy_is_shown_and_changed(ctl):
    assert ctl("policy").out == "lru\n"
    assert ctl("policy", "slru").out == "slru, was lru\n"
    assert ctl("policy", "-o", "json").json() == {"policy": "slru"}
    refused = ctl("policy", "best")
    assert (refused.code, "'best'" in refused.err) == (USAGE, True)


def test_the_policy_is_shown_with_what_it_hits_beside_lru(start_pandod):
    pandod = start_pandod(learn_reuse="yes")
    ctl = Pandoctl(pandod.address)
    assert ctl("policy").out == "lru\n"
    with Client(pandod.address, name="the worker") as client:
        for _ in range(2):
            match = client.match_prefix(
                prompt(4), lock=True, reserve_tokens=4 * PAGE_TOKENS
            )
            client.insert(
                [],
                match.reserved_page_ids,
                lock=match.lock,
                unlock=True,
                prompt_tokens=4 * PAGE_TOKENS - match.matched_tokens,
            )
    assert ctl("policy").out.splitlines() == [
        "policy    lru",
        "hit rate  50.0 % of 8 pages",
        "lru's     50.0 %, of the same size",
    ]
    assert ctl("policy", "-o", "json").json() == {
        "policy": "lru",
        "reuse": {
            "requested_pages": "8",
            "hit_pages": "4",
            "lru_hit_pages": "4",
        },
    }


DANGEROUS = [
    ("evict", "1"),
    ("flush", "--all"),
    ("locks", "--release", "1"),
    ("quarantine", "--free", "1"),
    ("drain",),
]


@pytest.mark.parametrize("command", DANGEROUS, ids=" ".join)
def test_a_dangerous_verb_is_refused_where_nobody_can_be_asked(ctl, client, command):
    publish(client, prompt(1))
    client.lock(prompt(1))
    publish(client, prompt(1, first=5))
    refused = ctl(*command, stdin="y\n")
    assert (refused.code, "--yes" in refused.err) == (USAGE, True)
    stats = client.stats()
    assert (stats.locks, stats.pages.evictable, client.draining) == (1, 1, False)


def test_a_dangerous_verb_asks_on_a_terminal(ctl, client):
    publish(client, prompt(2))
    refused = ctl.on_terminal("evict", 1, typed="n\n")
    assert (refused.code, "nothing was done" in refused.out) == (FAILED, True)
    assert ctl.on_terminal("evict", 1, typed="\n").code == FAILED
    assert client.stats().pages.evictable == 2
    agreed = ctl.on_terminal("evict", 1, typed="y\n")
    assert (agreed.code, "Evict up to 1 page? " in agreed.out) == (OK, True)
    assert client.stats().pages.evictable == 1


# Draining.


def test_a_drain_admits_nothing_new_and_ends_nothing(ctl, client, pandod):
    publish(client, prompt(1))
    held = client.lock(prompt(1))
    assert ctl("drain", "--yes").out == "draining\n"
    eventually(lambda: client.draining)
    assert ctl("health").code == UNHEALTHY
    assert ctl("health", "--service", "liveness").code == OK
    waiting = ctl.start("drain", "--wait", "--yes", "-o", "json")
    held.release()
    assert json.loads(waiting.communicate()[0]) == {"state": "idle"}
    assert pandod.running


def test_a_drain_can_end_pandod(start_pandod):
    pandod = start_pandod(drain_timeout="1h")
    ctl = Pandoctl(pandod.address)
    with Client(pandod.address) as client:
        publish(client, prompt(1))
        held = client.lock(prompt(1))
        # Saying it twice does not make it hurry.
        for _ in range(2):
            assert ctl("drain", "--exit", "--yes").code == OK
        waiting = ctl.start("drain", "--exit", "--wait", "--yes")
        eventually(lambda: pandod.log().count("an operator drains") == 3)
        held.release()
        assert waiting.communicate()[0] == "ended\n"
        assert pandod.wait() == 0
    assert "second signal" not in pandod.log()
