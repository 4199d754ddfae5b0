// Refreshes the page about once a second while somebody can see it.

const PAUSE_MS = 1000;

export class Live {
  // `refresh` asks for everything and shows it; `showState` gets "live" or
  // "lost" with a sentence.
  constructor(refresh, showState) {
    this.refresh = refresh;
    this.showState = showState;
    this.timer = null;
    this.running = null;
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
        await this.refresh();
        this.showState("live", "live");
      } catch (error) {
        this.showState("lost", `no answer: ${error.message}`);
      }
    }
    this.running = null;
    this.timer = setTimeout(() => this.soon(), PAUSE_MS);
  }
}
