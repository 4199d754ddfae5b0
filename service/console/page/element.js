// Makes an element. Texts are never taken for markup.

export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children.filter((child) => child !== null));
  return made;
}

export function row(...cells) {
  return element("tr", {}, ...cells.map((cell) => element("td", {}, cell)));
}

export const byId = (id) => document.getElementById(id);
