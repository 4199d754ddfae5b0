// Finds nodes, namespaces and sessions by number or name.

import { get } from "./api.js";
import { byId, element } from "./element.js";
import { namespaceName } from "./format.js";
import { chooseSession, select, zoomTo } from "./view.js";

const TYPING_MS = 150;
// "Node 7" is found as 7 is.
const KIND = /^(node|namespace|session)[\s-]+(?=\d+$)/i;

const input = byId("search-text");
const results = byId("found");
let timer = null;

function close() {
  results.hidden = true;
  results.replaceChildren();
}

async function search() {
  const text = input.value.trim();
  if (!text) return close();
  let shown;
  try {
    const { found } = await get("search", { text: text.replace(KIND, "") });
    shown = found.length ? found.map(resultOf)
      : [note("Nothing in the cache is called so.")];
  } catch (error) {
    shown = [note(error.message)];
  }
  if (text !== input.value.trim()) return;
  results.replaceChildren(...shown);
  results.hidden = false;
}

const note = (text) => element("li", { className: "note" }, text);

function resultOf(hit) {
  const [label, go] = hit.session !== undefined
    ? [`Session ${hit.session} ${hit.client_name}`, () => {
        chooseSession(hit.session);
        byId("sessions").scrollIntoView({ block: "center" });
      }]
    : hit.node !== undefined
      ? [`Node ${hit.node}`, () => show(hit.name)]
      : [`Namespace ${hit.namespace.number}: ${namespaceName(hit.namespace)}`,
         () => show(hit.name)];
  return element("li", {}, element("button", {
    type: "button",
    textContent: label,
    onclick: () => {
      close();
      input.value = "";
      go();
    },
  }));
}

function show(name) {
  zoomTo(name);
  select(name);
}

input.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(search, TYPING_MS);
});
input.addEventListener("keydown", (event) => {
  if (event.key === "Escape") close();
});
byId("search").addEventListener("submit", async (event) => {
  event.preventDefault();
  await search();
  results.querySelector("button")?.click();
});
document.addEventListener("click", (event) => {
  if (!byId("search").contains(event.target)) close();
});
