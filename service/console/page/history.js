// The answers of the last minutes, as far as the page has seen them.

import { ratesBetween } from "./rates.js";

const KEPT_SECONDS = 300;
// Rates are over so much time, so that single calls do not make noise.
const WINDOW_SECONDS = 5;

export class History {
  samples = [];
  points = [];

  add(stats) {
    const last = this.samples[this.samples.length - 1];
    if (last && isEarlierBoot(last, stats)) this.samples = this.points = [];
    this.samples = this.samples.filter(
      (sample) => sample.time_s > stats.time_s - KEPT_SECONDS);
    const before = this.samples.find(
      (sample) => sample.time_s >= stats.time_s - WINDOW_SECONDS) ?? last;
    this.samples.push(stats);
    if (!before) return;
    this.points = this.points.filter(
      (point) => point.time > stats.time_s - KEPT_SECONDS);
    this.points.push(ratesBetween(before, stats));
  }

  // Over all that is kept.
  overall() {
    const [first] = this.samples;
    const last = this.samples[this.samples.length - 1];
    return first === last ? null : ratesBetween(first, last);
  }
}

// Counts only grow while pandod runs.
const isEarlierBoot = (before, now) => now.matches < before.matches ||
  now.sessions_lost < before.sessions_lost;
