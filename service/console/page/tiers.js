// The tiers, and the movers that copy for them.

import { byId, element, show } from "./element.js";
import { bytes, count, percent } from "./format.js";

export function showTiers({ tiers, movers }) {
  byId("tiers").hidden = tiers.length === 0;
  show(byId("tier-rows"), ...tiers.map(rowOf));
  show(byId("movers"), ...movers.map(({ device, is_present }) =>
    element("li", { className: is_present ? "" : "error" },
            `pando-mover of ${device}: `,
            element("b", {}, is_present ? "copies" : "missing"))));
}

function rowOf(tier) {
  const cell = (label, text) => {
    const made = element("td", { className: "number" }, text);
    made.dataset.label = label;
    return made;
  };
  const pages = (number) => `${count(number)} (${bytes(number * tier.page_bytes)})`;
  const state = stateOf(tier);
  const row = element("tr", {},
    element("td", {}, tier.name),
    cell("Held", heldOf(tier)),
    cell("Stored", pages(tier.stored_pages)),
    cell("Loaded", pages(tier.loaded_pages)),
    cell("Dropped", count(tier.dropped_pages)),
    cell("Failures", count(tier.failures)),
    element("td", { className: state ? "error" : "" }, state || "works"));
  row.dataset.key = tier.name;
  return row;
}

// It is not known for a store that many machines share.
function heldOf({ held_pages, capacity_pages, page_bytes }) {
  if (held_pages === undefined) return "–";
  return `${count(held_pages)} (${bytes(held_pages * page_bytes)}), ` +
    percent(held_pages / capacity_pages);
}

function stateOf({ refuses_stores, refuses_loads }) {
  if (refuses_stores && refuses_loads) return "fails";
  if (refuses_stores) return "stores fail";
  return refuses_loads ? "loads fail" : "";
}
