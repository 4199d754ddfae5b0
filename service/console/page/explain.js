// Why a prompt matches as far as it does: Admin.ExplainMatch.

import { explain } from "./api.js";
import { byId, element } from "./element.js";
import { age, count, plural } from "./format.js";

const MAX_TOKEN = 2 ** 32 - 1;

const result = byId("explanation");

for (const field of ["extra-key", "cache-salt"]) {
  byId(`has-${field}`).addEventListener("change", (event) => {
    byId(field).disabled = !event.target.checked;
  });
}

byId("explain").addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    const tokens = tokensOf(byId("explain-tokens").value);
    show(await explain({ namespace: namespace(), tokens }), tokens.length);
  } catch (error) {
    result.replaceChildren(element("p", { className: "error" }, error.message));
  }
});

function tokensOf(text) {
  const words = text.match(/[^\s,;[\]]+/g) ?? [];
  return words.map((word) => {
    const token = Number(word);
    if (/^\d+$/.test(word) && token <= MAX_TOKEN) return token;
    throw new Error(
      `"${word.slice(0, 20)}" is no token id: a whole number up to ${MAX_TOKEN}`);
  });
}

function namespace() {
  const fields = { bigram: byId("bigram").checked };
  if (byId("has-extra-key").checked) fields.extra_key = byId("extra-key").value;
  if (byId("has-cache-salt").checked) {
    fields.cache_salt = byId("cache-salt").value;
  }
  return fields;
}

function show(answer, tokens) {
  const matched = answer.matched_tokens;
  const bar = element("div");
  bar.style.width = `${tokens ? (100 * matched) / tokens : 0}%`;
  result.replaceChildren(
    element("div", { className: "match-bar" }, bar),
    element("p", {}, element("b", {}, count(matched)),
            ` of ${plural(tokens, "token")} ${tokens === 1 ? "is" : "are"} found. `,
            reason(answer)),
    ...notes(answer).map((note) => element("p", { className: "muted" }, note)));
}

function reason(answer) {
  switch (answer.end) {
    case "MATCH_END_COMPLETE":
      return "All of it is cached.";
    case "MATCH_END_PAGE_FLOOR":
      return "What is left is less than a page.";
    case "MATCH_END_DIVERGED":
      return "The cache goes on with other tokens " +
        `from token ${count(answer.diverged_at)} on.`;
    case "MATCH_END_EVICTED":
      return `The next page was evicted ${age(answer.evicted_ms_ago / 1000)} ago, ` +
        `${EVICTED_FOR[answer.evicted_for] ?? "for another reason"}.`;
    default:
      return "The next page was never cached, or was evicted long ago.";
  }
}

const EVICTED_FOR = {
  EVICTION_REASON_ALLOCATION: "because a reservation needed room",
  EVICTION_REASON_REQUEST: "because Evict was called",
  EVICTION_REASON_WATERMARK: "to keep some pages free",
  EVICTION_REASON_QUOTA: "because its namespace was at its quota",
  EVICTION_REASON_FLUSH: "by a flush",
};

const NOT_LOADED = {
  NOT_LOADED_NOT_ASKED: "no call has asked for it",
  NOT_LOADED_TOO_FEW: "that is less than --tier-min-load-tokens",
  NOT_LOADED_NO_ROOM: "loads may take no more room now",
  NOT_LOADED_NO_MOVER: "a pando-mover is missing",
};

function notes(answer) {
  const notes = [];
  if (answer.is_pending) notes.push("Another call is computing the next page.");
  if (answer.loadable_tokens) {
    const why = NOT_LOADED[answer.not_loaded];
    notes.push(`${plural(answer.loadable_tokens, "token")} after that ` +
      `${answer.loadable_tokens === 1 ? "is" : "are"} ` +
      (answer.loadable_tier === "TIER_HOST" ? "in host memory" : "on disk") +
      (why ? `, not loaded because ${why}.` : "."));
  }
  if (answer.longer_in_namespaces.length) {
    const word = answer.longer_in_namespaces.length === 1 ? "namespace" : "namespaces";
    notes.push(
      `More of it is cached in ${word} ${answer.longer_in_namespaces.join(", ")}.`);
  }
  if (answer.locks.length) {
    const holders = new Set(answer.locks.map((lock) =>
      `${lock.session_number} ${lock.client_name}`.trim()));
    notes.push(`Locked by ${holders.size === 1 ? "session" : "sessions"} ` +
      [...holders].join(", ") + ".");
  }
  return notes;
}
