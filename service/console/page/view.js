// The view of the user: the branch that fills the picture, the selected one, the
// chosen session. The address keeps the first, so that it can be sent.

const rootOfAddress = () => decodeURIComponent(location.hash.slice(1)) || "all";

export const view = { root: rootOfAddress(), selected: null, session: null };

const listeners = [];

// Calls `react` after each change.
export const onChange = (react) => listeners.push(react);

export function change(changes) {
  Object.assign(view, changes);
  for (const react of listeners) react();
}

export const select = (name) => change({ selected: name });
export const chooseSession = (number) => change({ session: number });

export function zoomTo(name) {
  history.replaceState(null, "", name === "all" ? "#" : `#${name}`);
  change({ root: name });
}

window.addEventListener("hashchange", () => change({ root: rootOfAddress() }));
