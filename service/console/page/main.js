// Asks pandod about once a second and shows what it says.

import { get } from "./api.js";
import { showBlocks } from "./blocks.js";
import { refreshDetails } from "./details.js";
import "./explain.js";
import { byId } from "./element.js";
import { showFigures } from "./figures.js";
import { History } from "./history.js";
import { drawTree, wantedDetail } from "./icicle.js";
import { Live } from "./live.js";
import { showPages } from "./page_states.js";
import { onThemeChange } from "./palette.js";
import { showPath } from "./path.js";
import "./search.js";
import { refreshLocks, refreshSessions } from "./sessions.js";
import { showTiers } from "./tiers.js";
import { showTimelines } from "./timelines.js";
import { onChange, view, zoomTo } from "./view.js";

const history = new History();
let stats = null;
let tree = null;

async function refreshStats() {
  stats = await get("stats");
  history.add(stats);
  showFigures(stats, history.overall());
  showPages(stats);
  showBlocks(stats.blocks);
  showTiers(stats);
  showTimelines(history.points, stats.time_s);
}

async function refreshTree() {
  const root = view.root;
  try {
    tree = await get("tree", { name: root, ...wantedDetail() });
  } catch (error) {
    if (error.status !== 404 || root === "all") throw error;
    zoomTo("all"); // it was evicted
    return;
  }
  if (root === view.root) showTree();
}

function showTree() {
  byId("tree-empty").hidden = tree.branches[0].below.nodes > 0;
  showPath(tree.path);
  drawTree(tree, stats.page_tokens);
}

async function refresh() {
  await refreshStats();
  await Promise.all([
    refreshTree(),
    refreshSessions(stats.time_s),
    refreshLocks(),
    refreshDetails(stats),
  ]);
  return { isDraining: stats.is_draining };
}

function showState(state, text) {
  const live = byId("live");
  live.dataset.state = state;
  document.body.classList.toggle("stale", state === "lost");
  live.textContent = text;
}

const live = new Live(refresh, showState);
onChange(() => live.soon());
onThemeChange(() => tree && showTree());
new ResizeObserver(() => tree && showTree()).observe(byId("icicle"));
live.soon();
