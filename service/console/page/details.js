// The selected branch: its figures, its children, on request its tokens.

import { get } from "./api.js";
import { byId, element, show } from "./element.js";
import { age, branchName, count, namespaceName, plural } from "./format.js";
import { onChange, select, view, zoomTo } from "./view.js";

const CHILDREN_AT_ONCE = 20;

const panel = byId("details");
let firstChild = 0;
let shown = null; // the name that the panel is about
let tokensOfShown = null; // once a user asked for them

onChange(() => {
  if (view.selected === shown) return;
  shown = view.selected;
  firstChild = 0;
  panel.hidden = shown === null;
  panel.replaceChildren();
  panel.dataset.name = shown ?? "";
});

// The branch that a block stands for; for merged blocks, the one whose children
// they are.
const branchOf = (name) => name.replace(/\/merged$/, "");

export async function refreshDetails(stats) {
  const name = shown;
  if (name === null) return;
  try {
    const answer = await get("branch", {
      name: branchOf(name),
      first_child: firstChild,
    });
    if (name === shown) showBranch(answer, stats);
  } catch (error) {
    if (error.status !== 404) throw error;
    if (name === shown) showGone();
  }
}

function showGone() {
  panel.replaceChildren(
    title("Gone"),
    element("p", { className: "empty gone" },
            "It was evicted, or its namespace is empty now."));
}

function title(text) {
  return element("div", { className: "title-row" },
    element("h3", {}, text),
    element("button", {
      className: "link",
      textContent: "Close",
      onclick: () => select(null),
    }));
}

function showBranch(answer, stats) {
  const { branch } = answer;
  show(panel,
    title(branchName(branch)),
    figures(answer, stats.page_tokens),
    element("div", { className: "actions" },
      element("button", {
        className: "zoom",
        textContent: "Zoom in",
        disabled: view.root === branch.name,
        onclick: () => zoomTo(branch.name),
      }),
      stats.shows_tokens && branch.node ? tokensButton(branch.name) : null),
    tokensShown(branch.name),
    ...children(answer, stats.page_tokens));
}

function figures({ branch, path }, pageTokens) {
  const { node, below } = branch;
  const namespace = path[1]?.namespace;
  const terms = node ? [
    ["Tokens", count(node.pages * pageTokens)],
    ["Pages", count(node.pages)],
    ["From token", count(node.begin_page * pageTokens)],
    ["Locks, and locked branches", count(node.locks)],
    ["Hits", count(node.hits)],
    ["Priority", count(node.priority)],
    ["Cached for", age(node.age_s)],
    ["Last used", `${age(node.idle_s)} ago`],
  ] : [];
  const all = [
    ...terms,
    ["Namespace", namespace
      ? `${namespace.number}: ${namespaceName(namespace)}` : null],
    ["Nodes, all below", count(below.nodes)],
    ["Tokens, all below", count(below.pages * pageTokens)],
    ["Of those locked", count(below.locked_pages * pageTokens)],
  ];
  return element("dl", {}, ...all.filter(([, value]) => value !== null)
    .flatMap(([term, value]) => [
      element("dt", {}, term),
      element("dd", {}, value),
    ]));
}

function tokensButton(name) {
  return element("button", {
    textContent: "Show tokens",
    onclick: async () => {
      const { tokens } = await get("tokens", { name });
      tokensOfShown = { name, tokens };
      show(byId("tokens"), ...tokensShown(name).childNodes);
    },
  });
}

function tokensShown(name) {
  const text = tokensOfShown?.name === name
    ? element("p", { className: "tokens" }, tokensOfShown.tokens.join(" ")) : null;
  return element("div", { id: "tokens" }, text);
}

function children(answer, pageTokens) {
  if (answer.total_children === 0) return [];
  const rows = answer.children.map((child) =>
    element("tr", {
      className: "choice",
      onclick: () => select(child.name),
    },
    element("td", {}, linkTo(branchName(child))),
    element("td", { className: "number" },
            count(child.below.pages * pageTokens)),
    element("td", { className: "number" }, count(child.below.nodes))));
  return [
    element("h2", {}, plural(answer.total_children, "branch", "branches")),
    element("div", { className: "scroll" }, element("table", {},
      element("thead", {}, element("tr", {},
        element("th", {}, "the largest first"),
        element("th", { className: "number" }, "Tokens"),
        element("th", { className: "number" }, "Nodes"))),
      element("tbody", {}, ...rows))),
    ...turning(answer),
  ];
}

// The row has the handler; the button lets the keyboard reach it.
const linkTo = (text) => element("button", { className: "link", textContent: text });

function turning(answer) {
  const turn = (by) => () => { firstChild = Math.max(0, firstChild + by); };
  const end = answer.first_child + answer.children.length;
  if (answer.first_child === 0 && end === answer.total_children) return [];
  return [element("div", { className: "actions" },
    element("button", {
      textContent: "Larger",
      disabled: answer.first_child === 0,
      onclick: turn(-CHILDREN_AT_ONCE),
    }),
    element("button", {
      textContent: "Smaller",
      disabled: end >= answer.total_children,
      onclick: turn(CHILDREN_AT_ONCE),
    }))];
}
