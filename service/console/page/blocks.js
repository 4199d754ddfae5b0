// The block memory: which kinds have how much of it.

import { byId, element, show } from "./element.js";
import { bytes, compact, count, namespaceName, percent, plural } from "./format.js";

// Further kinds are one part of the bar.
const SHOWN_IN_BAR = 6;
const COLORS = ["protected", "evictable", "reserved", "quarantined", "accent", "hot"];

export function showBlocks(blocks) {
  byId("blocks").hidden = blocks === null;
  byId("sessions-table").classList.toggle("has-blocks", blocks !== null);
  if (blocks === null) return;
  showBar(blocks);
  show(byId("kinds"), ...blocks.kinds.map(rowOf));
  byId("kinds-note").textContent = noteOf(blocks);
}

function showBar(blocks) {
  const used = blocks.memory_bytes - blocks.free_bytes;
  const shown = blocks.kinds.filter((kind) => kind.bytes).slice(0, SHOWN_IN_BAR);
  const others = used - shown.reduce((sum, kind) => sum + kind.bytes, 0);
  const parts = shown.map((kind, i) => [nameOf(kind), kind.bytes, COLORS[i]]);
  if (others > 0) parts.push(["others", others, "padding"]);
  parts.push(["free", blocks.free_bytes, "free"]);
  show(byId("block-bar"), ...parts.map(([name, size, color]) =>
    element("div", { className: color, title: `${name}: ${bytes(size)}` })));
  // Not an attribute, which the page's policy forbids.
  parts.forEach(([, size], i) => {
    byId("block-bar").children[i].style.flexGrow = size;
  });
  show(byId("block-legend"), ...parts.map(([name, size, color]) =>
    element("li", {}, element("span", { className: `swatch ${color}` }),
            `${name} `, element("b", {}, bytes(size)))));
}

const nameOf = (kind) => kind.label || `kind ${kind.number}`;

function rowOf(kind) {
  const cell = (label, text) => {
    const made = element("td", { className: "number" }, text);
    made.dataset.label = label;
    return made;
  };
  const asked = kind.hits + kind.misses;
  const row = element("tr", { className: kind.is_newest ? "" : "ended" },
    element("td", { title: `Namespace ${namespaceName(kind)}` }, nameOf(kind),
            kind.generation > 1 ? ` (generation ${kind.generation})` : ""),
    cell("Bytes", bytes(kind.bytes)),
    cell("Extents", count(kind.extents)),
    cell("Blocks", compact(kind.ready_blocks)),
    cell("Locked", compact(kind.locked_blocks)),
    cell("Hits", asked ? `${compact(kind.hits)}, ${percent(kind.hits / asked)}` : "–"),
    cell("Evicted", compact(kind.evicted_blocks)));
  row.dataset.key = kind.number;
  return row;
}

function noteOf(blocks) {
  const more = blocks.total_kinds - blocks.kinds.length;
  return [
    blocks.total_kinds === 0 ? "No kind is stored yet" : null,
    more > 0 ? plural(more, "smaller kind") : null,
    `${bytes(blocks.free_bytes)} of ${bytes(blocks.memory_bytes)} free`,
    `${plural(blocks.locks, "lock")} and ${plural(blocks.reservations, "reservation")}`,
    blocks.quarantined_blocks
      ? `${plural(blocks.quarantined_blocks, "block")} in quarantine` : null,
    blocks.recoveries
      ? `taken over ${plural(blocks.recoveries, "time")} from a pandod that died` : null,
  ].filter(Boolean).join("; ") + ".";
}
