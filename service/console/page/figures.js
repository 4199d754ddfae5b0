// The figures at the top.

import { byId, element } from "./element.js";
import { age, compact, count, percent, plural } from "./format.js";

// Each: its name, the figure, a note below it.
const FIGURES = [
  ["Hit rate",
   ({ overall }) => percent(overall?.hitRate ?? null),
   ({ stats }) => {
     const share = ratio(stats.hit_tokens, stats.query_tokens);
     return `${percent(share)} since the start`;
   }],
  ["Cached tokens",
   ({ stats }) => compact(cachedPages(stats) * stats.page_tokens),
   ({ stats }) => `${percent(cachedPages(stats) / stats.pages.capacity)} of the pool`],
  ["Nodes",
   ({ stats }) => count(stats.nodes),
   ({ stats }) => plural(stats.namespaces, "namespace")],
  ["Sessions",
   ({ stats }) => count(stats.sessions - stats.internal_sessions),
   ({ stats }) => `${count(stats.sessions_lost)} lost since the start`],
  ["Locks",
   ({ stats }) => count(stats.locks),
   ({ stats }) => stats.locks
     ? `the oldest ${age(stats.oldest_lock_s)}` : "none is held"],
  ["Refused reservations",
   ({ stats }) => count(stats.allocation_failures),
   ({ stats }) => plural(stats.waits, "waiting match", "waiting matches")],
];

const ratio = (part, all) => all > 0 ? part / all : null;

// The hits of the policy above LRU's, in points of the hit rate, where they are
// known.
function gainOf(reuse) {
  if (!reuse?.requested_pages) return "";
  const gain = 100 * ratio(reuse.hit_pages - reuse.lru_hit_pages, reuse.requested_pages);
  return `: ${gain < 0 ? "−" : "+"}${Math.abs(gain).toFixed(1)} points over LRU`;
}

function poolOf({ layout, is_open, page_tokens }) {
  if (is_open) return "open pool, waits for the first engine";
  if (!layout) return "no pool";
  const inside = layout.heads
    ? `${plural(layout.heads, "head")} of ${layout.head_size} ${layout.dtype}`
    : "opaque pages";
  return `${plural(layout.layers, "layer")} of ${inside}, ` +
    `${plural(page_tokens, "token")} a page`;
}

const cachedPages = ({ pages }) => pages.evictable + pages.protected;

const tiles = FIGURES.map(([name]) => {
  const tile = element("div", { className: "card figure" },
    element("h2", {}, name), element("strong"), element("small"));
  byId("figures").append(tile);
  return tile;
});

export function showFigures(stats, overall) {
  FIGURES.forEach(([, figure, note], i) => {
    tiles[i].querySelector("strong").textContent = figure({ stats, overall });
    tiles[i].querySelector("small").textContent = note({ stats });
  });
  byId("server").textContent = [
    stats.model,
    poolOf(stats),
    `evicts ${stats.policy}${gainOf(stats.reuse)}`,
  ].filter(Boolean).join(" · ");
}
