"""Listings of pandoctl about a pandod, in each format."""

import json
import re

import numpy as np
import pytest
from e2e.pandoctl.conftest import (
    FAILED,
    FIRST_TOKEN,
    OK,
    SALT,
    USAGE,
    prompt,
    publish,
    rows,
    spelled,
)
from pando_kv import Client, Namespace
from pandoctl import Pandoctl
from pandod_process import PAGE_TOKENS, POOL_PAGES


def test_status_shows_the_pool_and_what_is_in_it(ctl, client):
    publish(client, prompt(3))
    text = ctl("status").out
    assert f"pages     {POOL_PAGES - 4} free, 0 reserved, 3 evictable" in text
    assert "health    SERVING\n" in text
    assert "model     a model\n" in text
    assert "index     1 node in 1 namespace\n" in text


@pytest.mark.parametrize(
    ("options", "pool", "layout"),
    [
        (
            {"layers": 2, "heads": 3, "head_size": 64, "dtype": "bfloat16"},
            "[0-9]+ pages of [0-9]+ tokens, .* in 1 shard",
            "2 layers of 2 planes of 3 heads of 64 bfloat16, layer_first",
        ),
        (
            {
                "layers": 2,
                "page_bytes": "64KiB",
                "page_format": "a b",
                "layout_order": "page_first",
                "pool_shards": 2,
            },
            "[0-9]+ pages of [0-9]+ tokens, .* in 2 shards",
            "2 layers of 32.0 KiB a page, page_first, format a b",
        ),
        ({"pool_bytes": "8MiB", "pool_pages": None}, "open, .*", "-"),
        ({"memory": "16MiB", "pool_pages": None}, "none", "-"),
    ],
)
def test_status_tells_the_layout(start_pandod, options, pool, layout):
    none = dict.fromkeys(("layers", "heads", "head_size", "dtype", "page_tokens"))
    text = Pandoctl(start_pandod(**none | options).address)("status").out
    assert re.search(f"^pool +{pool}$", text, re.MULTILINE), text
    assert re.search(f"^layout +{layout}$", text, re.MULTILINE), text


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


# Control characters of one and two bytes, and marks that turn the writing direction.
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
        assert session.pop("steps").isdigit()
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


def test_sessions_say_how_many_steps_their_calls_took(ctl, client):
    def steps():
        (session,) = ctl("sessions", "-o", "json").json()["sessions"]
        return int(session["steps"])

    publish(client, prompt(3))
    before = steps()
    with client.lock(prompt(2)):
        assert steps() == before + 1
    assert steps() == before + 2


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
