// The tree as a picture that moves with it. A click selects a block; a click on
// the selected one zooms in, and on the block that fills the picture, out. Tab
// reaches one block, the arrows move from there, Enter is a click.

import { byId } from "./element.js";
import { age, branchName, compact, count, plural } from "./format.js";
import { layOut, neighbour } from "./icicle_layout.js";
import { colorOf, textColorOn } from "./palette.js";
import { onChange, select, view, zoomTo } from "./view.js";

const ROW = 25;
const GAP = 2;
const MOVE_MS = 450;
const LETTER_WIDTH = 6.4;
const MIN_TEXT_WIDTH = 30;
// Blocks that would be narrower are merged.
const MIN_BLOCK_WIDTH = 3;

const frame = byId("icicle");
const svg = d3.select(frame).append("svg").attr("role", "tree");
const calm = matchMedia("(prefers-reduced-motion: reduce)");

svg.append("defs").append("pattern")
  .attr("id", "hatch").attr("patternUnits", "userSpaceOnUse")
  .attr("width", 7).attr("height", 7).attr("patternTransform", "rotate(45)")
  .call((pattern) => {
    pattern.append("rect").attr("class", "hatch")
      .attr("width", 7).attr("height", 7);
    pattern.append("line").attr("class", "hatch-line").attr("y2", 7);
  });

let held = new Set();
let boxes = [];
let reached = null; // the key of the block that Tab reaches
let drawn = { root: null, height: 0 }; // what the frame has room for

// The detail to ask for, so that the answer can be drawn.
export function wantedDetail() {
  const width = frame.clientWidth;
  return {
    parts: Math.max(1, Math.floor(width / MIN_BLOCK_WIDTH)),
    limit: Math.round(Math.min(500, Math.max(120, width / 2))),
  };
}

export function drawTree(tree, pageTokens) {
  boxes = layOut(tree, frame.clientWidth);
  if (!boxes.some((box) => box.key === reached)) reached = boxes[0].key;
  const height = (1 + d3.max(boxes, (box) => box.row)) * ROW;
  const tokens = tree.branches[0].below.pages * pageTokens;
  svg.attr("aria-label", `The tree: ${plural(tokens, "token")} in ` +
    plural(tree.branches[0].below.nodes, "node"));
  fitFrame(tree.branches[0].name, height);
  move(svg).attr("height", height);
  const groups = svg.selectAll("g").data(boxes, (box) => box.key);
  leave(groups.exit());
  const entered = enter(groups.enter());
  // Not merge(), which goes by index: filter() moves what comes after a gap.
  const all = d3.selectAll([...entered.nodes(), ...groups.filter(".here").nodes()]);
  all.each(function (box) { describe(d3.select(this), box, pageTokens); });
  const moving = move(all).attr("opacity", 1)
    .attr("transform", (box) => `translate(${box.x},${box.row * ROW})`);
  moving.select("rect").attr("width", (box) => box.width)
    .attr("fill", fillOf);
  moving.select(".locked-share").attr("width", lockedWidth);
  moving.on("end", function (box) { label(d3.select(this), box, box.width, pageTokens); });
  mark();
}

// As high as the tree, up to what the style allows. While the same is shown it does
// not shrink, so that what is below stays in its place.
function fitFrame(root, height) {
  const before = drawn.root === root ? drawn.height : 0;
  drawn = { root, height: Math.max(before, height) };
  frame.style.height = `${drawn.height}px`;
}

// Those nodes are marked, and the others stand back.
export function holdUp(names) {
  held = new Set(names);
  mark();
}

function move(selection) {
  return selection.transition("move").duration(calm.matches ? 0 : MOVE_MS)
    .ease(d3.easeCubicOut);
}

function leave(groups) {
  groups.classed("here", false);
  const going = move(groups).attr("opacity", 0).remove();
  going.select("rect").attr("width", 0);
}

function enter(entering) {
  const groups = entering.append("g").attr("class", "here").attr("opacity", 0)
    .attr("transform", (box) => `translate(${box.x},${box.row * ROW})`)
    .attr("role", "treeitem").on("click", click).on("keydown", press);
  groups.append("rect").attr("height", ROW - GAP).attr("width", 0)
    .attr("fill", fillOf);
  groups.filter((box) => box.kind === "merged").append("rect")
    .attr("class", "locked-share").attr("height", 3).attr("y", ROW - GAP - 3);
  groups.append("text").attr("x", 7).attr("y", ROW / 2 + 3);
  groups.append("title");
  return groups;
}

const kindOf = (box) => box.kind === "merged" ? "merged"
  : box.branch.node ? "node" : "frame";

function fillOf(box) {
  if (kindOf(box) === "node") return colorOf(box.branch.node);
  return kindOf(box) === "merged" ? "url(#hatch)" : null;
}

function lockedWidth(box) {
  const { locked_pages, pages } = box.branch.merged;
  return (box.width * locked_pages) / Math.max(1, pages);
}

function describe(group, box, pageTokens) {
  group.attr("data-name", box.key).attr("class", `here ${kindOf(box)}`);
  const title = titleOf(box, pageTokens);
  group.select("title").text(title);
  group.attr("aria-label", title).attr("aria-level", box.row + 1)
    .attr("tabindex", box.key === reached ? 0 : -1);
  // On its way a block is never narrower than at the narrower end of it.
  const width = Number(group.select("rect").attr("width"));
  label(group, box, Math.min(width, box.width), pageTokens);
}

function label(group, box, width, pageTokens) {
  group.select("text").text(fit(labelsOf(box, pageTokens), width))
    .attr("fill", kindOf(box) === "node"
      ? textColorOn(colorOf(box.branch.node)) : null);
}

// The longest of the labels that fits.
function fit(labels, width) {
  if (width < MIN_TEXT_WIDTH) return "";
  const letters = Math.floor((width - 12) / LETTER_WIDTH);
  const fitting = labels.find((label) => label.length <= letters);
  if (fitting) return fitting;
  return letters < 4 ? "" : `${labels[0].slice(0, letters - 1)}…`;
}

// From long to short.
function labelsOf({ kind, branch }, pageTokens) {
  if (kind === "merged") {
    const more = count(branch.merged.nodes);
    return [`${more} more`, `+${more}`];
  }
  if (!branch.node) {
    const tokens = compact(branch.below.pages * pageTokens);
    return [`${branchName(branch)} · ${tokens} tokens`, branchName(branch)];
  }
  const { pages, locks } = branch.node;
  const tokens = count(pages * pageTokens);
  const words = [`${tokens} tokens`, tokens];
  if (locks > 0) words.unshift(`${tokens} tokens · ${plural(locks, "lock")}`);
  return words;
}

function titleOf({ kind, branch }, pageTokens) {
  if (kind === "merged") {
    const { nodes, pages, locked_pages } = branch.merged;
    return `${plural(nodes, "more node")} below ${branchName(branch)}\n` +
      `${count(pages * pageTokens)} tokens, ` +
      `${count(locked_pages * pageTokens)} locked`;
  }
  const below = `${count(branch.below.pages * pageTokens)} tokens in ` +
    plural(branch.below.nodes, "node");
  if (!branch.node) return `${branchName(branch)}\n${below}`;
  const { pages, locks, hits, idle_s } = branch.node;
  return `${branchName(branch)}: ${count(pages * pageTokens)} tokens\n` +
    `${plural(locks, "lock")}, ${plural(hits, "hit")}, used ${age(idle_s)} ago\n` +
    `with all below it: ${below}`;
}

function click(box) {
  reached = box.key;
  if (box.row === 0 && box.branch.parent) zoomTo(box.branch.parent);
  else if (view.selected === box.key && box.kind === "branch") zoomTo(box.key);
  select(box.key);
}

function press(box) {
  const { key } = d3.event;
  const next = neighbour(boxes, box, key);
  if (key === "Enter" || key === " ") click(box);
  else if (next) reach(next.key);
  else return;
  d3.event.preventDefault();
}

function reach(key) {
  reached = key;
  svg.selectAll("g.here").attr("tabindex", (box) => box.key === key ? 0 : -1)
    .filter((box) => box.key === key).node().focus();
}

function mark() {
  d3.select(frame).classed("dims", held.size > 0);
  svg.selectAll("g").classed("selected", (box) => box.key === view.selected)
    .classed("held", (box) => held.has(box.key))
    .attr("aria-selected", (box) => box.key === view.selected);
}

onChange(mark);
