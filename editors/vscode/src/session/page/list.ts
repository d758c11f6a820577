/**
 * A list of which only what is near the view is in the document. Rows have heights of their own: guessed until they were shown once,
 * measured from then on. Whatever changes, the row at the top of the view stays where it is, or, at the end, the end stays in view.
 */

export interface ListRow {
  readonly key: string;
}

const OVERSCAN = 900;
/** So near to the end counts as there: a fraction of a line. */
const NEAR_END = 24;

export class WindowedList<R extends ListRow> {
  private rows: readonly R[] = [];
  private readonly indexOf = new Map<string, number>();
  private readonly heights = new Map<string, number>();
  private offsets = new Float64Array(1);
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
    this.resized = new ResizeObserver(() => this.schedule());
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
    this.measureUp();
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
    this.measureUp();
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
    this.schedule();
    this.onScroll();
  }

  private schedule(): void {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      if (this.view.clientWidth !== this.width) {
        this.width = this.view.clientWidth;
        for (const key of [...this.heights.keys()]) if (!this.shown.has(key)) this.heights.delete(key);
      }
      this.place(this.anchor());
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
    for (let round = 0; round < 4; round += 1) {
      const before = this.offset(this.rows.length);
      this.measureUp();
      this.scrollTo(anchor);
      this.drawWindow();
      const changed = this.measureShown();
      if (changed) this.measureUp();
      this.space();
      this.scrollTo(anchor);
      if (!changed && before === this.offset(this.rows.length)) break;
    }
  }

  private scrollTo(anchor: { key: string; delta: number } | undefined): void {
    const top = anchor
      ? this.offset(Math.max(0, this.index(anchor.key))) - anchor.delta
      : this.following
        ? this.view.scrollHeight
        : this.view.scrollTop;
    if (Math.abs(top - this.view.scrollTop) >= 1) this.view.scrollTop = top;
  }

  private drawWindow(): void {
    const top = this.following ? Math.max(0, this.offset(this.rows.length) - this.view.clientHeight) : this.view.scrollTop;
    const from = this.indexAt(top - OVERSCAN);
    const to = Math.min(this.rows.length, this.indexAt(top + this.view.clientHeight + OVERSCAN) + 1);
    for (const [key, node] of this.shown) {
      const index = this.index(key);
      // The row that has the focus stays: with it, a reader's place would go.
      if ((index < from || index >= to) && !node.contains(document.activeElement)) this.drop(key, node);
    }
    let next: ChildNode = this.above;
    const wanted = [...this.shown.keys()].map((key) => this.index(key)).filter((index) => index < from || index >= to);
    for (let index = from; index < to; index += 1) wanted.push(index);
    wanted.sort((a, b) => a - b);
    this.drawn = wanted;
    for (const index of wanted) {
      const row = this.rows[index];
      if (!row) continue;
      let node = this.shown.get(row.key);
      if (!node) {
        node = this.draw(row, index);
        this.shown.set(row.key, node);
        this.resized.observe(node);
      }
      node.setAttribute("aria-posinset", String(index + 1));
      if (next.nextSibling !== node) next.after(node);
      next = node;
    }
    this.space();
  }

  private drawn: number[] = [];

  /** Room for what is not drawn: above, below, and between a row kept for its focus and the rest. */
  private space(): void {
    const [first, last] = [this.drawn[0], this.drawn.at(-1)];
    this.above.style.height = `${first === undefined ? 0 : this.offset(first)}px`;
    this.below.style.height = `${last === undefined ? 0 : this.offset(this.rows.length) - this.offset(last + 1)}px`;
    let previous: number | undefined;
    for (const index of this.drawn) {
      const node = this.shown.get(this.rows[index]?.key ?? "");
      if (node)
        node.style.marginTop = previous !== undefined && index > previous + 1 ? `${this.offset(index) - this.offset(previous + 1)}px` : "";
      previous = index;
    }
  }

  private measureShown(): boolean {
    let changed = false;
    for (const [key, node] of this.shown) {
      const height = node.getBoundingClientRect().height;
      if (height > 0 && Math.abs((this.heights.get(key) ?? -1) - height) > 0.4) {
        this.heights.set(key, height);
        changed = true;
      }
    }
    return changed;
  }

  private measureUp(): void {
    if (this.offsets.length !== this.rows.length + 1) this.offsets = new Float64Array(this.rows.length + 1);
    let sum = 0;
    for (const [index, row] of this.rows.entries()) {
      this.offsets[index] = sum;
      sum += this.heights.get(row.key) ?? this.guess(row);
    }
    this.offsets[this.rows.length] = sum;
  }

  private offset(index: number): number {
    return this.offsets[index] ?? 0;
  }

  /** The row in which a height lies. */
  private indexAt(height: number): number {
    let low = 0;
    let high = this.rows.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.offset(middle) <= height) low = middle;
      else high = middle - 1;
    }
    return Math.max(0, low);
  }

  private drop(key: string, node: HTMLElement): void {
    this.resized.unobserve(node);
    node.remove();
    this.shown.delete(key);
  }
}

function spacer(): HTMLElement {
  const made = document.createElement("div");
  made.setAttribute("aria-hidden", "true");
  return made;
}
