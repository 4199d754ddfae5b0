// Makes elements, and brings what is shown up to date. Texts are never taken for
// markup.

export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children.filter((child) => child !== null));
  return made;
}

export const byId = (id) => document.getElementById(id);

// Makes the children of `parent` equal to those given. Elements that are there
// stay, so that a click, a selection of text or the keyboard's focus outlasts the
// refresh: an element becomes the given one with the same data-key, or without
// keys the one at its place.
export function show(parent, ...wanted) {
  const present = [...parent.childNodes];
  const byKey = new Map(present.filter(keyOf).map((node) => [keyOf(node), node]));
  const unused = present.filter((node) => !keyOf(node));
  const shown = wanted.filter((child) => child !== null).map((child) => {
    const next = child instanceof Node ? child : document.createTextNode(child);
    const old = keyOf(next) ? byKey.get(keyOf(next)) : unused.shift();
    return old && isAlike(old, next) ? become(old, next) : next;
  });
  for (const node of present) if (!shown.includes(node)) node.remove();
  shown.forEach((node, i) => {
    if (parent.childNodes[i] !== node) parent.insertBefore(node, parent.childNodes[i]);
  });
}

const keyOf = (node) => node.dataset?.key;
const isAlike = (a, b) => a.nodeName === b.nodeName;

function become(old, next) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== next.data) old.data = next.data;
    return old;
  }
  for (const { name } of [...old.attributes]) {
    if (!next.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of next.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  old.onclick = next.onclick;
  show(old, ...next.childNodes);
  return old;
}
