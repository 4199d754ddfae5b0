// Sessions, what each holds, and how many steps its calls have taken. Those that
// hold most come first, then those that call most. A session that has ended stays
// in the list for a moment, so that its end is seen.

import { get } from "./api.js";
import { byId, element, show } from "./element.js";
import { age, count, plural } from "./format.js";
import { holdUp } from "./icicle.js";
import { change, chooseSession, onChange, select, view } from "./view.js";

const ENDED_SECONDS = 6;

const list = byId("sessions");
const note = byId("sessions-note");
const locksPanel = byId("session-locks");

const filter = byId("session-filter");

let known = new Map(); // number -> the session, and when it ended
let lookedFor = ""; // those of this name or number are in `known`

export async function refreshSessions(now) {
  const text = filter.value.trim();
  const answer = await get("sessions", { text });
  if (text !== filter.value.trim()) return;
  if (text !== lookedFor) known = new Map();
  lookedFor = text;
  showSessions(answer, now);
}

function showSessions({ sessions, total, internal, called }, now) {
  const present = new Map(sessions.map((session) => [session.number, session]));
  for (const [number, session] of known) {
    if (present.has(number) || called > sessions.length) continue;
    const endedAt = session.endedAt ?? now;
    if (now - endedAt > ENDED_SECONDS) continue;
    present.set(number, { ...session, endedAt });
  }
  known = present;
  show(list, ...[...known.values()].map(rowOf));
  note.textContent = noteOf(sessions.length, total, internal, called);
  note.hidden = note.textContent === "";
}

function noteOf(listed, total, internal, called) {
  if (lookedFor && called === 0) return "No session is called so.";
  if (!lookedFor && total === internal) return "No worker is connected.";
  if (called > listed) return `${plural(called - listed, "more session")}.`;
  return "";
}

function stateOf(session) {
  if (session.endedAt) return "ended";
  if (session.is_internal) return "internal";
  if (!session.is_connected) return "lost";
  return session.is_attached ? "attached" : "connected";
}

function rowOf(session) {
  const state = stateOf(session);
  const hasEnded = state === "ended";
  const number = (label, text, className = "") => {
    const cell = element("td", { className: `number ${className}` },
                         hasEnded ? "–" : text);
    cell.dataset.label = label;
    return cell;
  };
  const row = element("tr", {
    className: "choice",
    onclick: () =>
      chooseSession(view.session === session.number ? null : session.number),
  },
  element("td", {}, element("button", {
    className: "link",
    textContent: `${session.number} ${session.client_name}`,
  })),
  element("td", { className: `state-${state}` }, state),
  number("Locks", count(session.locks)),
  number("Oldest lock",
         session.oldest_lock_s === undefined ? "–" : age(session.oldest_lock_s)),
  number("Reserved pages", count(session.reserved_pages)),
  number("Locked blocks", count(session.locked_blocks), "blocks-only"),
  number("Reserved blocks", count(session.reserved_blocks), "blocks-only"),
  number("Steps", count(session.steps)),
  number("Age", age(session.age_s)));
  row.dataset.session = row.dataset.key = session.number;
  row.classList.toggle("chosen", view.session === session.number);
  row.classList.toggle("ended", hasEnded);
  return row;
}

// The locks of the chosen session, in the list and in the picture.
export async function refreshLocks() {
  const session = view.session;
  if (session === null) return;
  const { locks, total } = await get("locks", { session });
  if (session !== view.session) return;
  holdUp(locks.flatMap((lock) => lock.path));
  show(locksPanel,
    element("p", { className: "empty" },
            `Session ${session} holds ${plural(total, "lock")}.`),
    element("div", { className: "scroll" }, element("table", {},
      element("tbody", {}, ...locks.map(lockRow)))));
}

function lockRow(lock) {
  const name = lock.path[lock.path.length - 1];
  return element("tr", {
    className: name ? "choice" : "",
    onclick: () => name && select(name),
  },
  element("td", {}, name
    ? element("button", { className: "link",
                          textContent: name.replace("node-", "Node ") })
    : "the root, or a new node"),
  element("td", { className: "number" }, `${count(lock.locked_tokens)} tokens`),
  element("td", { className: "number" }, age(lock.age_s)));
}

filter.addEventListener("input", () => change({}));
// There may be hundreds of buttons between.
byId("skip-sessions").onclick = () => byId("explain-title").focus();

onChange(() => {
  for (const row of list.rows) {
    row.classList.toggle("chosen", row.dataset.session === String(view.session));
  }
  if (view.session !== null) return;
  holdUp([]);
  locksPanel.replaceChildren();
});
