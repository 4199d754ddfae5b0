// Where the blocks of the picture are: as wide as the tokens of a branch and
// all below it, one row down for each level. Children keep their order, by the
// oldest node in them, so that what is split or grows stays in its place.

const MIN_WIDTH = 1; // pixels

// Boxes {key, kind, branch, x, width, row}; kind is "branch" or "merged".
export function layOut(tree, width) {
  const [root] = tree.branches;
  const scale = width / Math.max(1, root.below.pages);
  const children = new Map(tree.branches.map((branch) => [branch.name, []]));
  for (const branch of tree.branches.slice(1)) {
    children.get(branch.parent).push(branch);
  }
  const boxes = [];
  const place = (branch, x, row) => {
    boxes.push({
      key: branch.name,
      kind: "branch",
      branch,
      x,
      row,
      width: branch === root ? width : branch.below.pages * scale,
    });
    const inOrder = children.get(branch.name);
    inOrder.sort((a, b) => a.oldest - b.oldest);
    for (const child of inOrder) {
      place(child, x, row + 1);
      x += child.below.pages * scale;
    }
    if (branch.merged) {
      boxes.push({
        key: `${branch.name}/merged`,
        kind: "merged",
        branch,
        x,
        row: row + 1,
        width: branch.merged.pages * scale,
      });
    }
  };
  place(root, 0, 0);
  return boxes.filter((box) => box.width >= MIN_WIDTH);
}

// The box that an arrow key leads to, if there is one.
export function neighbour(boxes, box, key) {
  const inRow = (row) => boxes.filter((other) => other.row === row);
  switch (key) {
    case "ArrowDown":
      return inRow(box.row + 1)
        .find(({ x }) => x >= box.x && x < box.x + box.width);
    case "ArrowUp":
      return inRow(box.row - 1)
        .find(({ x, width }) => x <= box.x && box.x < x + width);
    case "ArrowLeft":
      return d3.greatest(inRow(box.row).filter(({ x }) => x < box.x), ({ x }) => x);
    case "ArrowRight":
      return d3.least(inRow(box.row).filter(({ x }) => x > box.x), ({ x }) => x);
    default:
      return undefined;
  }
}
