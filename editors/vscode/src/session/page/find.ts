/** Find within the page: in all rows, drawn or not, folded or not. */

import { type Row, rowText } from "../rows";
import { plural } from "../visible";
import type { WindowedList } from "./list";

interface Host {
  openFolds(row: Row): void;
  loadAll(): void;
  complete(): boolean;
  closed(): void;
}

export class Finder {
  private readonly input: HTMLInputElement;
  private readonly result: HTMLElement;
  private texts = new Map<string, string>();
  private found: number[] = [];
  private at = -1;
  private query = "";

  constructor(
    private readonly bar: HTMLElement,
    private readonly list: WindowedList<Row>,
    private readonly host: Host,
  ) {
    this.input = bar.querySelector("input") as HTMLInputElement;
    this.result = bar.querySelector("output") as HTMLElement;
    this.input.addEventListener("input", () => this.search());
    bar.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.step(event.shiftKey ? -1 : 1);
      else if (event.key === "Escape") this.hide();
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    bar.addEventListener("click", (event) => {
      const name = (event.target as Element).closest<HTMLElement>("button")?.dataset["find"];
      if (name === "next") this.step(1);
      else if (name === "previous") this.step(-1);
      else if (name === "close") this.hide();
    });
    list.view.addEventListener("scroll", () => this.highlight(), { passive: true });
  }

  show(): void {
    this.bar.hidden = false;
    this.input.focus();
    this.input.select();
    if (this.input.value) this.search();
  }

  hide(): void {
    if (this.bar.hidden) return;
    this.bar.hidden = true;
    this.query = "";
    this.found = [];
    this.highlight();
    this.host.closed();
  }

  rowsChanged(): void {
    this.texts.clear();
    if (!this.query) return;
    const current = this.list.row(this.found[this.at] ?? -1)?.key;
    this.collect();
    this.at = current === undefined ? -1 : this.found.indexOf(this.list.index(current));
    this.tell();
    this.highlight();
  }

  /** To the next or previous row that has it; false where nothing is looked for. */
  step(by: 1 | -1): boolean {
    if (!this.query || this.found.length === 0) return false;
    this.at = this.at < 0 ? (by > 0 ? 0 : this.found.length - 1) : (this.at + by + this.found.length) % this.found.length;
    this.reveal();
    return true;
  }

  /** Marks what is found in the rows that are drawn. Ranges, not elements: the rows stay as they are. */
  highlight(): void {
    const highlights = CSS.highlights;
    if (!highlights) return;
    highlights.delete("found");
    highlights.delete("found-here");
    if (!this.query) return;
    const current = this.list.row(this.found[this.at] ?? -1)?.key;
    const [all, here] = [new Highlight(), new Highlight()];
    for (const node of this.list.nodes()) {
      for (const range of ranges(node, this.query)) (node.dataset["key"] === current ? here : all).add(range);
    }
    highlights.set("found", all);
    highlights.set("found-here", here);
  }

  private search(): void {
    this.query = this.input.value.toLowerCase();
    this.at = -1;
    if (!this.query) {
      this.found = [];
      this.result.textContent = "";
      return this.highlight();
    }
    this.collect();
    if (!this.host.complete()) this.host.loadAll();
    // The one that is nearest to the end that is seen, as one looks for what was said last.
    if (this.found.length > 0) {
      const top = this.list.index(this.list.topKey() ?? "");
      const next = this.found.findIndex((index) => index >= top);
      this.at = next >= 0 ? next : this.found.length - 1;
      this.reveal();
    } else {
      this.tell();
      this.highlight();
    }
  }

  private collect(): void {
    this.found = [];
    for (let index = 0; index < this.list.length; index += 1) {
      const row = this.list.row(index);
      if (row && this.textOf(row).includes(this.query)) this.found.push(index);
    }
  }

  private textOf(row: Row): string {
    let text = this.texts.get(row.key);
    if (text === undefined) {
      text = rowText(row).toLowerCase();
      this.texts.set(row.key, text);
    }
    return text;
  }

  private reveal(): void {
    const index = this.found[this.at];
    const row = index === undefined ? undefined : this.list.row(index);
    if (index === undefined || !row) return;
    this.list.toRow(index, "top");
    const drawn = this.list.node(row.key);
    if (drawn && ranges(drawn, this.query).length === 0) this.host.openFolds(row);
    const node = this.list.node(row.key);
    const range = node && ranges(node, this.query)[0];
    const view = this.list.view.getBoundingClientRect();
    const box = range?.getBoundingClientRect();
    if (box && (box.bottom > view.bottom - 40 || box.top < view.top)) this.list.view.scrollTop += box.top - view.top - view.height / 3;
    range?.startContainer.parentElement?.closest("pre")?.scrollBy(0, 0);
    this.tell();
    this.highlight();
  }

  private tell(): void {
    const more = this.host.complete() ? "" : " so far";
    const inAll = plural(this.found.length, "entry", "entries");
    this.result.textContent = this.found.length === 0 ? `No results${more}` : `${this.at < 0 ? "" : `${this.at + 1} of `}${inAll}${more}`;
  }
}

function ranges(root: Node, query: string): Range[] {
  const found: Range[] = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node.parentElement?.closest("button, time")) continue;
    const text = (node.nodeValue ?? "").toLowerCase();
    for (let at = text.indexOf(query); at >= 0 && found.length < 500; at = text.indexOf(query, at + query.length)) {
      if (at + query.length > (node.nodeValue ?? "").length) break;
      const range = document.createRange();
      range.setStart(node, at);
      range.setEnd(node, at + query.length);
      found.push(range);
    }
  }
  return found;
}
