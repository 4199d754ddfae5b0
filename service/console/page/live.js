// Refreshes the page about once a second while it is visible.

import { age } from "./format.js";

const PAUSE_MS = 1000;

export class Live {
  // `refresh` asks for everything, shows it, and says whether the server drains;
  // `showState` gets "live", "draining" or "lost" with a sentence.
  constructor(refresh, showState) {
    this.refresh = refresh;
    this.showState = showState;
    this.timer = null;
    this.running = null;
    this.refreshedAt = null;
    document.addEventListener("visibilitychange", () => this.soon());
  }

  // At once, but after what runs already.
  async soon() {
    clearTimeout(this.timer);
    this.wanted = true;
    if (!this.running) this.running = this.run();
    await this.running;
  }

  async run() {
    while (this.wanted && !document.hidden) {
      this.wanted = false;
      try {
        const { isDraining } = await this.refresh();
        this.refreshedAt = performance.now();
        if (isDraining) this.showState("draining", "draining: takes no new requests");
        else this.showState("live", "live");
      } catch (error) {
        this.showState("lost", this.lossOf(error));
      }
    }
    this.running = null;
    this.timer = setTimeout(() => this.soon(), PAUSE_MS);
  }

  lossOf(error) {
    const reason = error.name === "TimeoutError" ? "it does not answer" : error.message;
    if (this.refreshedAt === null) return `no answer: ${reason}`;
    const seconds = (performance.now() - this.refreshedAt) / 1000;
    return `no answer: ${reason}; what is shown is ${age(seconds)} old`;
  }
}
