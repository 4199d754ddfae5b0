// The way from everything to the branch that fills the picture.

import { byId, element, show } from "./element.js";
import { branchName } from "./format.js";
import { zoomTo } from "./view.js";

const SHOWN = 6;

export function showPath(path) {
  const parts = path.slice(0, -1).map((branch) => element("button", {
    className: "link",
    textContent: branchName(branch),
    onclick: () => zoomTo(branch.name),
  }));
  parts.push(element("b", {}, branchName(path[path.length - 1])));
  if (parts.length > SHOWN) parts.splice(2, parts.length - SHOWN, "…");
  show(byId("path"),
    ...parts.flatMap((part, i) => i ? [element("span", {}, "›"), part] : [part]));
}
