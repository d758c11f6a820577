/**
 * A list of which only what is near the view is in the document. Rows have heights of their own: guessed until they were shown once,
 * measured from then on. Whatever changes, the row at the top of the view stays where it is, or, at the end, the end stays in view.
 */

import { Sums } from "./sums";

export interface ListRow {
  readonly key: string;
}

/** Drawn above and below the view. While a `MARGIN` of it is left, scrolling draws nothing. */
const OVERSCAN = 900;
const MARGIN = 300;
/** So near to the end counts as there: a fraction of a line. */
const NEAR_END = 24;

export class WindowedList<R extends ListRow> {
  private rows: readonly R[] = [];
  private readonly indexOf = new Map<string, number>();
  /** As measured, and as guessed for rows that were not shown yet. */
  private readonly heights = new Map<string, number>();
  private readonly guesses = new Map<string, number>();
  private offsets = new Sums([]);
  /** Indices of the drawn rows, in order: those near the view from `from` to before `to`, and the one that has the focus. */
  private drawn: number[] = [];
  private from = 0;
  private to = 0;
  /** Rows came, went or must be drawn anew. */
  private stale = true;
  private readonly resizes = new Map<string, number>();
  private readonly shown = new Map<string, HTMLElement>();
  private readonly above = spacer();
  private readonly below = spacer();
  private readonly resized: ResizeObserver;
  private following = true;
  private width = 0;
  private frame = 0;

  constructor(
    readonly view: HTMLElement,
    content: HTMLElement,
    private readonly draw: (row: R, index: number) => HTMLElement,
    private readonly guess: (row: R) => number,
    private readonly onScroll: () => void,
  ) {
    content.append(this.above, this.below);
    view.addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.resized = new ResizeObserver((entries) => this.noteSizes(entries));
    this.resized.observe(view);
  }

  get length(): number {
    return this.rows.length;
  }

  /** Whether the end is in view, and stays there as rows come. */
  get atEnd(): boolean {
    return this.following;
  }

  get nearStart(): boolean {
    return this.view.scrollTop < OVERSCAN * 2;
  }

  index(key: string): number {
    return this.indexOf.get(key) ?? -1;
  }

  row(index: number): R | undefined {
    return this.rows[index];
  }

  /** The row that is at the top of the view. */
  topKey(): string | undefined {
    return this.rows[this.indexAt(this.view.scrollTop + 1)]?.key;
  }

  node(key: string): HTMLElement | undefined {
    return this.shown.get(key);
  }

  nodes(): Iterable<HTMLElement> {
    return this.shown.values();
  }

  /** Other rows. What is shown and reads as before under its key is not drawn again: a selection in it, or the focus, stays. */
  setRows(rows: readonly R[]): void {
    const anchor = this.anchor();
    const before = this.rows;
    const old = new Map([...this.shown.keys()].map((key) => [key, before[this.index(key)]]));
    this.rows = rows;
    this.indexOf.clear();
    for (const [index, row] of rows.entries()) this.indexOf.set(row.key, index);
    for (const [key, node] of this.shown) {
      const row = rows[this.index(key)];
      if (row === undefined || JSON.stringify(row) !== JSON.stringify(old.get(key))) this.drop(key, node);
    }
    this.sumUp();
    this.place(anchor);
  }

  /** Draws one row again, for example since its folds changed. Its top stays where it is, at the end too: it is what is looked at. */
  redraw(key: string): void {
    const node = this.shown.get(key);
    if (!node) return;
    const top = this.offset(this.index(key));
    const anchor = top >= this.view.scrollTop ? { key, delta: top - this.view.scrollTop } : this.anchor();
    if (anchor) this.following = false;
    const focused = node === document.activeElement;
    this.drop(key, node);
    this.place(anchor);
    if (focused) this.shown.get(key)?.focus({ preventScroll: true });
    this.scrolled();
  }

  redrawAll(): void {
    const anchor = this.anchor();
    for (const [key, node] of this.shown) this.drop(key, node);
    this.heights.clear();
    this.guesses.clear();
    this.sumUp();
    this.place(anchor);
  }

  toEnd(): void {
    this.following = true;
    this.place(undefined);
  }

  /** Brings a row into the view: at its top, or only as far as is needed. */
  toRow(index: number, where: "top" | "near"): void {
    const row = this.rows[index];
    if (!row) return;
    const top = this.offset(index);
    const bottom = this.offset(index + 1);
    const { scrollTop, clientHeight } = this.view;
    if (where === "near" && top >= scrollTop && bottom <= scrollTop + clientHeight) return;
    const fromBelow = where === "near" && bottom > scrollTop + clientHeight && bottom - top < clientHeight;
    this.following = index === this.rows.length - 1 && fromBelow;
    if (this.following) this.place(undefined);
    else this.place({ key: row.key, delta: fromBelow ? clientHeight - (bottom - top) - 8 : 8 });
  }

  private scrolled(): void {
    const { scrollTop, clientHeight, scrollHeight } = this.view;
    this.following = scrollTop + clientHeight >= scrollHeight - NEAR_END;
    if (!this.covers(scrollTop, MARGIN)) this.schedule();
    this.onScroll();
  }

  /** A row that is observed anew is told of, too: it has the height that it was measured with. */
  private noteSizes(entries: readonly ResizeObserverEntry[]): void {
    for (const { target, borderBoxSize } of entries) {
      const key = (target as HTMLElement).dataset["key"];
      const height = borderBoxSize[0]?.blockSize ?? 0;
      if (target === this.view) this.schedule();
      else if (key !== undefined && height > 0 && differs(this.heights.get(key), height)) {
        this.resizes.set(key, height);
        this.schedule();
      }
    }
  }

  private schedule(): void {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      const anchor = this.anchor();
      if (this.view.clientWidth !== this.width) {
        this.width = this.view.clientWidth;
        for (const key of [...this.heights.keys()]) if (!this.shown.has(key)) this.heights.delete(key);
        this.guesses.clear();
        this.sumUp();
      }
      for (const [key, height] of this.resizes) if (this.shown.has(key)) this.setHeight(key, height);
      this.resizes.clear();
      this.place(anchor);
    });
  }

  /** The topmost row in view and how far below the view's top it begins. */
  private anchor(): { key: string; delta: number } | undefined {
    if (this.following || this.rows.length === 0) return undefined;
    const index = this.indexAt(this.view.scrollTop + 1);
    const row = this.rows[index];
    return row && { key: row.key, delta: this.offset(index) - this.view.scrollTop };
  }

  /** Draws what is near the view, measures it, and puts the anchor back to its place; again where the guesses were too far off. */
  private place(anchor: { key: string; delta: number } | undefined): void {
    const start = this.topFor(anchor);
    // After a jump, what is in view comes first, the rest with the next frame.
    const jumped = !this.stale && (this.offset(this.from) > start + this.view.clientHeight || this.offset(this.to) < start);
    if (jumped) this.schedule();
    for (let round = 0; round < 4; round += 1) {
      const fresh = this.drawWindow(this.topFor(anchor), round > 0 || jumped ? 0 : MARGIN, jumped ? MARGIN : OVERSCAN);
      const changed = this.measure(fresh);
      this.space();
      if (!changed) break;
    }
    this.scrollTo(anchor);
  }

  private topFor(anchor: { key: string; delta: number } | undefined): number {
    if (anchor) return Math.max(0, this.offset(Math.max(0, this.index(anchor.key))) - anchor.delta);
    return this.following ? Math.max(0, this.offset(this.rows.length) - this.view.clientHeight) : this.view.scrollTop;
  }

  private scrollTo(anchor: { key: string; delta: number } | undefined): void {
    const top = anchor ? this.topFor(anchor) : this.following ? this.view.scrollHeight : this.view.scrollTop;
    if (Math.abs(top - this.view.scrollTop) >= 1) this.view.scrollTop = top;
  }

  /** Whether what is drawn reaches so far beyond the view. */
  private covers(top: number, margin: number): boolean {
    if (this.stale) return false;
    return (
      (this.from === 0 || this.offset(this.from) <= top - margin) &&
      (this.to === this.rows.length || this.offset(this.to) >= top + this.view.clientHeight + margin)
    );
  }

  /** Draws the rows from `over` above `top` to `over` below the view unless `margin` of them are there; gives those that were not there before. */
  private drawWindow(top: number, margin: number, over: number): HTMLElement[] {
    if (this.covers(top, margin)) return [];
    const bottom = top + this.view.clientHeight;
    this.stale = false;
    this.from = this.indexAt(top - over);
    this.to = Math.min(this.rows.length, this.indexAt(bottom + over) + 1);
    for (const [key, node] of this.shown) {
      const index = this.index(key);
      // The row that has the focus stays: with it, a reader's place would go.
      if ((index < this.from || index >= this.to) && !node.contains(document.activeElement)) this.take(key, node);
    }
    const { from, to } = this;
    this.drawn = [...this.shown.keys()].map((key) => this.index(key)).filter((index) => index < from || index >= to);
    for (let index = from; index < to; index += 1) this.drawn.push(index);
    this.drawn.sort((a, b) => a - b);
    const fresh: HTMLElement[] = [];
    let next: ChildNode = this.above;
    for (const index of this.drawn) {
      const row = this.rows[index];
      if (!row) continue;
      let node = this.shown.get(row.key);
      if (!node) {
        node = this.draw(row, index);
        this.shown.set(row.key, node);
        this.resized.observe(node);
        fresh.push(node);
      }
      const position = String(index + 1);
      if (node.ariaPosInSet !== position) node.ariaPosInSet = position;
      if (next.nextSibling !== node) next.after(node);
      next = node;
    }
    return fresh;
  }

  /** Room for what is not drawn: above, below, and between a row kept for its focus and the rest. */
  private space(): void {
    const [first, last] = [this.drawn[0], this.drawn.at(-1)];
    const set = (node: HTMLElement, property: "height" | "marginTop", pixels: number) => {
      const value = pixels === 0 && property === "marginTop" ? "" : `${pixels}px`;
      if (node.style[property] !== value) node.style[property] = value;
    };
    set(this.above, "height", first === undefined ? 0 : this.offset(first));
    set(this.below, "height", last === undefined ? 0 : this.offset(this.rows.length) - this.offset(last + 1));
    let previous: number | undefined;
    for (const index of this.drawn) {
      const node = this.shown.get(this.rows[index]?.key ?? "");
      const gap = previous !== undefined && index > previous + 1 ? this.offset(index) - this.offset(previous + 1) : 0;
      if (node) set(node, "marginTop", gap);
      previous = index;
    }
  }

  /** Whether any of them is of another height than was thought. */
  private measure(nodes: readonly HTMLElement[]): boolean {
    // All are read before anything is written: the page is laid out once.
    const heights = nodes.map((node) => node.getBoundingClientRect().height);
    let changed = false;
    for (const [at, node] of nodes.entries()) changed = this.setHeight(node.dataset["key"] ?? "", heights[at] ?? 0) || changed;
    return changed;
  }

  private setHeight(key: string, height: number): boolean {
    const index = this.index(key);
    if (height <= 0 || index < 0) return false;
    this.heights.set(key, height);
    const before = this.offsets.value(index);
    this.offsets.set(index, height);
    return differs(before, height);
  }

  /** All offsets anew, after rows came or went. What is drawn is looked at again. */
  private sumUp(): void {
    this.stale = true;
    this.offsets = new Sums(
      this.rows.map((row) => {
        const known = this.heights.get(row.key) ?? this.guesses.get(row.key);
        if (known !== undefined) return known;
        const guess = this.guess(row);
        this.guesses.set(row.key, guess);
        return guess;
      }),
    );
  }

  private offset(index: number): number {
    return this.offsets.before(index);
  }

  /** The row in which a height lies. */
  private indexAt(height: number): number {
    return Math.max(0, Math.min(this.rows.length - 1, this.offsets.find(height)));
  }

  /** Takes a row off the page for good: it is drawn anew. */
  private drop(key: string, node: HTMLElement): void {
    this.take(key, node);
    this.stale = true;
  }

  private take(key: string, node: HTMLElement): void {
    this.resized.unobserve(node);
    node.remove();
    this.shown.delete(key);
  }
}

function differs(before: number | undefined, height: number): boolean {
  return before === undefined || Math.abs(before - height) > 0.4;
}

function spacer(): HTMLElement {
  const made = document.createElement("div");
  made.setAttribute("aria-hidden", "true");
  return made;
}
