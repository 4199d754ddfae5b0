// The last minutes as lines.

import { byId } from "./element.js";
import { age, compact, duration } from "./format.js";
import { onThemeChange, palette } from "./palette.js";

// How far the lines may go back, and how far apart the ticks are then.
const SPANS = [
  { seconds: 60, step: 20 },
  { seconds: 120, step: 30 },
  { seconds: 300, step: 60 },
];

const evictedFor = (reason) => (point) => point.evicted[reason];

const TIMELINES = [
  {
    id: "hit-rate",
    unit: (share) => `${Math.round(100 * share)} %`,
    scale: { min: 0, max: 1 },
    lines: [["tokens found", "good", (point) => point.hitRate]],
  },
  {
    id: "evictions",
    unit: compact,
    scale: { beginAtZero: true, stacked: true, suggestedMax: 1 },
    filled: true,
    lines: [
      ["reservation", "evictable", evictedFor("allocation")],
      ["watermark", "accent", evictedFor("watermark")],
      ["quota", "reserved", evictedFor("quota")],
      ["request", "hot", evictedFor("request")],
      ["flush", "quarantined", evictedFor("flush")],
    ],
  },
  {
    id: "rpc-time",
    unit: duration,
    scale: { type: "logarithmic", suggestedMin: 1e-5, suggestedMax: 1e-3 },
    lines: [
      ["99th percentile", "hot", (point) => point.p99],
      ["median", "evictable", (point) => point.p50],
    ],
  },
  {
    id: "calls",
    unit: compact,
    scale: { beginAtZero: true, suggestedMax: 1 },
    lines: [
      ["matches", "accent", (point) => point.matches],
      ["inserts", "hot", (point) => point.inserts],
    ],
  },
];

const charts = TIMELINES.map((timeline) => ({
  timeline,
  chart: new Chart(byId(timeline.id), {
    type: "line",
    data: {
      datasets: timeline.lines.map(([label]) => ({
        label,
        data: [],
        borderWidth: timeline.filled ? 0 : 1.6,
        pointRadius: 0,
        tension: 0.25,
        fill: timeline.filled ? "stack" : false,
      })),
    },
    options: optionsOf(timeline),
  }),
}));

// Lines that are nothing but zero have no legend.
function isUsed(item, { datasets }) {
  return datasets[item.datasetIndex].data.some((point) => point.y > 0);
}

function optionsOf({ unit, scale }) {
  return {
    animation: false,
    maintainAspectRatio: false,
    normalized: true,
    interaction: { mode: "nearest", axis: "x", intersect: false },
    scales: {
      x: {
        type: "linear",
        min: -SPANS[0].seconds,
        max: 0,
        grid: { display: false },
        ticks: {
          stepSize: SPANS[0].step,
          callback: (at) => at === 0 ? "now" : `-${age(-at)}`,
        },
      },
      y: {
        ...scale,
        ticks: {
          callback: (value) => isShown(value, scale) ? unit(value) : null,
          maxTicksLimit: scale.type ? 50 : 5,
        },
      },
    },
    plugins: {
      legend: {
        align: "start",
        labels: { boxWidth: 10, boxHeight: 10, font: { size: 11 }, filter: isUsed },
      },
      tooltip: {
        callbacks: {
          title: ([item]) => `${age(-item.parsed.x)} ago`,
          label: (item) => `${item.dataset.label}: ${unit(item.parsed.y)}`,
        },
      },
    },
  };
}

// A logarithmic scale shows the powers of ten alone.
function isShown(value, scale) {
  return scale.type !== "logarithmic" ||
    Number.isInteger(Math.round(1e6 * Math.log10(value)) / 1e6);
}

function paint() {
  for (const { timeline, chart } of charts) {
    chart.data.datasets.forEach((line, i) => {
      const color = palette[timeline.lines[i][1]];
      line.borderColor = color;
      line.backgroundColor = Object.assign(d3.color(color), { opacity: 0.55 })
        .toString();
    });
    for (const axis of Object.values(chart.options.scales)) {
      axis.ticks.color = palette.muted;
      axis.grid = { ...axis.grid, color: palette.line, borderColor: palette.line };
    }
    chart.options.plugins.legend.labels.color = palette.muted;
    chart.update("none");
  }
}

export function showTimelines(points, now) {
  const oldest = Math.max(0, ...points.map(({ time }) => now - time));
  const span = SPANS.find(({ seconds }) => oldest <= seconds) ?? SPANS[SPANS.length - 1];
  for (const { timeline, chart } of charts) {
    chart.data.datasets.forEach((line, i) => {
      line.data = points.map((point) => ({
        x: point.time - now,
        y: timeline.lines[i][2](point),
      }));
    });
    chart.options.scales.x.min = -span.seconds;
    chart.options.scales.x.ticks.stepSize = span.step;
    chart.update("none");
  }
}

paint();
onThemeChange(paint);
