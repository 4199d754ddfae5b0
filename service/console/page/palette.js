// The colours of the theme, for what is drawn.

const names = ["muted", "line", "locked", "hot", "cold", "evictable", "reserved",
               "quarantined", "accent", "good"];

// A node that was not used for so long is cold.
const COLD_SECONDS = 600;

export let palette = read();

function read() {
  const style = getComputedStyle(document.documentElement);
  const colors = Object.fromEntries(
    names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  return {
    ...colors,
    heat: d3.scaleLog().domain([1, COLD_SECONDS]).clamp(true)
      .range([colors.hot, colors.cold]).interpolate(d3.interpolateLab),
  };
}

// Calls `react` when the theme has changed.
export function onThemeChange(react) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    palette = read();
    react();
  });
}

// A locked node has one colour; any other shows how lately it was used.
export function colorOf(node) {
  return node.locks > 0 ? palette.locked : palette.heat(1 + node.idle_s);
}

// The colour in which a text can be read on that one.
export function textColorOn(color) {
  return d3.lab(color).l > 58 ? "#16202c" : "#ffffff";
}
