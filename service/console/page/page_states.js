// All pages of the pool by their state, as one bar.

import { byId, element } from "./element.js";
import { bytes, count, percent } from "./format.js";

const STATES = ["protected", "evictable", "reserved", "quarantined", "padding",
                "free"];

const bar = byId("page-bar");
const legend = byId("page-legend");

for (const state of STATES) {
  bar.append(element("div", { className: state }));
  legend.append(element("li", { id: `pages-${state}` },
    element("span", { className: `swatch ${state}` }), `${state} `,
    element("b")));
}

export function showPages(stats) {
  const { pages } = stats;
  STATES.forEach((state, i) => {
    bar.children[i].style.flexGrow = pages[state];
    bar.children[i].title = `${count(pages[state])} ${state}, ` +
      percent(pages[state] / pages.capacity);
    const number = legend.children[i].querySelector("b");
    number.textContent = count(pages[state]);
    number.dataset.pages = pages[state];
  });
  bar.dataset.capacity = pages.capacity;
  bar.title = `${count(pages.capacity)} pages, ` +
    bytes(pages.capacity * stats.page_bytes);
}
