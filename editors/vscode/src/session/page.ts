// The session page's script, in the webview. It gets entries, makes rows of them, and shows those that are near the view.
import "./page.css";
import type { Branch, Break } from "../protocol";
import type { FromPage, PageSession, ToPage, TranscriptOf } from "./messages";
import { element, icon, pageTarget, textNodes } from "./page/dom";
import { Finder } from "./page/find";
import { WindowedList } from "./page/list";
import { drawRow, guessHeight, ofTotal } from "./page/render";
import { appendRows, buildRows, localDay, localTime, type Row } from "./rows";
import type { PageEntry } from "./shrink";
import { oneLine, plainText, plural } from "./visible";

interface SavedState {
  sessionId: string;
  transcript?: TranscriptOf;
  title: string;
  viewing: string | null;
  /** The entry at the top of the view; none at the end, which is followed. */
  top: string | null;
  open: string[];
  closed: string[];
  raw: boolean;
}

declare function acquireVsCodeApi(): {
  postMessage(message: FromPage): void;
  getState(): Partial<SavedState> | undefined;
  setState(state: Partial<SavedState>): void;
};

/** Folds that are remembered over a reload. */
const REMEMBERED = 400;
/** Between two announcements of new entries, so that a screen reader is not talked over, in milliseconds. */
const ANNOUNCE_EVERY = 2500;

const vscode = acquireVsCodeApi();
const saved: Partial<SavedState> = vscode.getState() ?? pageTarget<SavedState>();
vscode.setState(saved);

class Page {
  private readonly view = need("view");
  private readonly feed = need("feed");
  private readonly status = need("status");
  private readonly live = need("live");
  private readonly notice = need("notice");
  private readonly latest = need("latest") as HTMLButtonElement;
  private readonly branchSelect = need("branches") as HTMLSelectElement;
  private readonly list: WindowedList<Row>;
  private readonly finder: Finder;

  private session: PageSession = {
    id: saved.sessionId ?? "",
    name: saved.title ?? "",
    cwd: "",
    updated: "",
    ...(saved.transcript ? { transcript: saved.transcript } : {}),
  };
  private entries: PageEntry[] = [];
  private rows: Row[] = [];
  private viewing: string | null = saved.viewing ?? null;
  private hasMore = false;
  private total = 0;
  private broken: Break | null = null;
  private open = new Set<string>(saved.open ?? []);
  private closed = new Set<string>(saved.closed ?? []);
  private raw = saved.raw ?? false;
  private allOpen: boolean | undefined;
  private asked = false;
  private wantsAll = false;
  private goHome = false;
  private unseen = 0;
  private active: string | undefined;
  private announced = 0;
  private announceTimer: ReturnType<typeof setTimeout> | undefined;
  private pendingCount = 0;
  private saveTimer: ReturnType<typeof setTimeout> | undefined;
  private unsaved = false;

  constructor() {
    const look = { isOpen: (key: string, byDefault: boolean) => this.isOpen(key, byDefault), raw: this.raw };
    Object.defineProperty(look, "raw", { get: () => this.raw });
    this.list = new WindowedList<Row>(
      this.view,
      this.feed,
      (row) => {
        const node = drawRow(row, look);
        node.setAttribute("aria-setsize", String(this.hasMore ? -1 : this.list.length));
        if (row.key === this.active) node.tabIndex = 0;
        return node;
      },
      guessHeight,
      () => this.scrolled(),
    );
    this.finder = new Finder(need("finder"), this.list, {
      openFolds: (row) => this.openFolds(row),
      loadAll: () => this.loadAll(),
      complete: () => !this.hasMore,
      closed: () => this.focusActive(),
    });
    window.addEventListener("message", (event: MessageEvent<ToPage>) => this.receive(event.data));
    document.addEventListener("keydown", (event) => this.key(event));
    document.addEventListener("click", (event) => this.clicked(event));
    this.feed.addEventListener("toggle", (event) => this.toggled(event), true);
    this.feed.addEventListener("focusin", (event) => this.focused(event));
    this.latest.addEventListener("click", () => this.toLatest());
    this.branchSelect.addEventListener("change", () => {
      vscode.postMessage({ type: "branch", leafId: this.branchSelect.value || null });
    });
    need("find").addEventListener("click", () => this.finder.show());
    need("folds").addEventListener("click", () => this.toggleAll());
    need("raw").addEventListener("click", () => this.toggleRaw());
    need("earlier").addEventListener("click", () => this.askOlder());
    this.showRaw();
    vscode.postMessage({ type: "ready", viewing: this.viewing, scrollTo: saved.top ?? null });
  }

  private receive(message: ToPage): void {
    switch (message.type) {
      case "reset":
        return this.reset(message);
      case "older":
        this.asked = false;
        this.entries = [...message.entries, ...this.entries];
        this.hasMore = message.hasMore;
        this.total = Math.max(message.total, this.entries.length);
        this.broken = message.broken ?? this.broken;
        this.rebuild();
        if (!this.hasMore) this.loadedAll();
        return;
      case "newer":
        return this.newer(message.entries, message.total);
      case "entry": {
        const at = this.entries.findIndex((entry) => entry.id === message.entry.id);
        if (at >= 0) this.entries[at] = message.entry;
        this.rebuild();
        return;
      }
      case "about":
        this.session = message.session;
        this.showHead(message.branches);
        return;
      case "notice":
        this.asked = false;
        return this.showNotice(message.text, message.restore ?? false);
      case "failed":
        return this.showFailure(message.text, message.restore ?? false, message.what ?? "session");
    }
  }

  private reset(message: Extract<ToPage, { type: "reset" }>): void {
    document.body.classList.remove("failed", "loading");
    this.asked = false;
    this.session = message.session;
    this.entries = message.entries;
    this.hasMore = message.hasMore;
    this.total = message.total;
    this.viewing = message.viewing;
    this.broken = message.broken;
    this.unseen = 0;
    this.showHead(message.branches);
    this.showNotice(message.notice, false);
    this.list.toEnd();
    this.rebuild();
    const at = message.scrollTo === null ? -1 : this.rowOfEntry(message.scrollTo);
    if (at >= 0) {
      this.list.toRow(at, "top");
      this.activate(at, false);
    } else {
      this.list.toEnd();
      this.activate(this.list.length - 1, false);
    }
    if (this.wantsAll && this.hasMore) vscode.postMessage({ type: "all" });
    this.save(true);
  }

  /** A result has no row of its own: its call's row is where it stands. */
  private rowOfEntry(entryId: string): number {
    const own = this.list.index(entryId);
    if (own >= 0) return own;
    for (let at = 0; at < this.list.length; at += 1) {
      const row = this.list.row(at);
      if (row?.type === "message" && row.blocks.some((block) => block.type === "tool" && block.call.result?.entryId === entryId)) return at;
    }
    return -1;
  }

  private newer(entries: PageEntry[], total: number): void {
    const known = new Set(this.entries.slice(-entries.length - 50).map((entry) => entry.id));
    const added = entries.filter((entry) => !known.has(entry.id));
    if (added.length === 0) return;
    const wasAtEnd = this.list.atEnd;
    this.entries.push(...added);
    this.total = Math.max(total, this.entries.length);
    if (!wasAtEnd) this.unseen += added.length;
    this.show(appendRows(this.rows, this.entries, added.length, { reachesStart: !this.hasMore, broken: this.broken }));
    this.announce(added.length);
  }

  private rebuild(): void {
    this.show(buildRows(this.entries, { reachesStart: !this.hasMore, broken: this.broken }));
  }

  private show(rows: Row[]): void {
    this.rows = rows;
    this.list.setRows(rows);
    this.feed.setAttribute("aria-busy", "false");
    if (this.active !== undefined && this.list.index(this.active) < 0) this.active = undefined;
    this.finder.rowsChanged();
    this.showStatus();
  }

  private showHead(branches: Branch[]): void {
    const name = this.session.name || "Untitled session";
    const title = need("title");
    title.replaceChildren(textNodes(oneLine(name, 200)));
    title.title = plainText(name).slice(0, 500);
    const list = this.session.transcript ? `Task list ${this.session.transcript.listId}` : "";
    const facts = [this.session.id, this.session.cwd, list].filter(Boolean).map((fact) => oneLine(fact, 120));
    need("facts").replaceChildren(...facts.map((fact) => element("bdi", {}, fact)));
    const options = (branches.length < 2 ? [] : branches).map((branch, at) => {
      const when = [localDay(branch.timestamp), localTime(branch.timestamp)].filter(Boolean).join(" ");
      const which = branch.current ? "Present branch" : `Branch ${at + 1}`;
      const text = oneLine(branch.lastText, 60);
      const option = element(
        "option",
        { value: branch.current ? "" : branch.leafId },
        `${which} · ${plural(branch.length, "entry", "entries")} · ${when}${text ? ` · ${text}` : ""}`,
      );
      option.selected = this.viewing === null ? branch.current : branch.leafId === this.viewing;
      return option;
    });
    this.branchSelect.replaceChildren(...options);
    need("branching").hidden = branches.length < 2;
    document.body.classList.toggle("other-branch", this.viewing !== null);
    const { transcript } = this.session;
    document.body.classList.toggle("transcript", transcript !== undefined);
    if (transcript) setText(need("nothing"), "There is no transcript yet. It shows here as soon as there is one.");
  }

  /** Called with every step of scrolling: what reads as before is left alone. */
  private showStatus(): void {
    const loaded = ofTotal(this.entries.length, this.total);
    const state = this.viewing !== null ? "another branch" : this.list.atEnd ? "following" : "";
    setText(this.status, [loaded, state].filter(Boolean).join(" · "));
    const earlier = need("earlier");
    earlier.hidden = !this.hasMore;
    setText(earlier, this.wantsAll ? `Loading earlier entries… (${loaded})` : "Load earlier entries");
    document.body.classList.toggle("empty", this.list.length === 0);
    this.latest.hidden = this.list.atEnd || this.list.length === 0;
    const news = this.unseen > 0 ? `${plural(this.unseen, "new entry", "new entries")} · ` : "";
    if (this.latest.childElementCount === 0 || this.latest.textContent !== `${news}Jump to latest`)
      this.latest.replaceChildren(icon("down"), `${news}Jump to latest`);
  }

  private showNotice(text: string, restore: boolean): void {
    this.notice.hidden = text === "";
    if (text === "") return this.notice.replaceChildren();
    const close = element(
      "button",
      { type: "button", class: "icon-button", "data-action": "dismiss", title: "Dismiss", "aria-label": "Dismiss" },
      icon("close"),
    );
    const button = restore ? element("button", { type: "button", class: "button", "data-action": "restore" }, "Restore session") : null;
    const words = element("span", {});
    words.append(textNodes(text));
    this.notice.replaceChildren(icon("warning"), words, button ?? "", close);
  }

  private showFailure(text: string, restore: boolean, what: string): void {
    document.body.classList.remove("loading");
    document.body.classList.add("failed");
    const words = element("p", {});
    words.append(textNodes(text));
    const act = element(
      "button",
      { type: "button", class: "button", "data-action": restore ? "restore" : "retry" },
      restore ? "Restore session" : "Try again",
    );
    need("failure").replaceChildren(element("h2", {}, icon("warning"), `This ${what} cannot be shown`), words, act);
  }

  private scrolled(): void {
    if (this.list.atEnd) this.unseen = 0;
    if (this.hasMore && this.list.nearStart) this.askOlder();
    this.showStatus();
    this.save();
  }

  private askOlder(): void {
    if (this.asked || !this.hasMore) return;
    this.asked = true;
    this.feed.setAttribute("aria-busy", "true");
    vscode.postMessage({ type: "older" });
  }

  private loadAll(): void {
    if (!this.hasMore) return this.loadedAll();
    if (this.wantsAll) return;
    this.wantsAll = true;
    vscode.postMessage({ type: "all" });
    this.showStatus();
  }

  private loadedAll(): void {
    this.wantsAll = false;
    this.showStatus();
    if (!this.goHome) return;
    this.goHome = false;
    this.activate(0, true, "top");
  }

  private toLatest(): void {
    this.unseen = 0;
    this.list.toEnd();
    this.activate(this.list.length - 1, true, "none");
    this.showStatus();
  }

  /** Waits until the last announcement was surely read, and says then how many came in all. */
  private announce(added: number): void {
    this.pendingCount += added;
    if (this.announceTimer !== undefined) return;
    const wait = Math.max(250, this.announced + ANNOUNCE_EVERY - Date.now());
    this.announceTimer = setTimeout(() => {
      this.announceTimer = undefined;
      this.announced = Date.now();
      this.live.textContent = plural(this.pendingCount, "new entry", "new entries");
      this.pendingCount = 0;
    }, wait);
  }

  private isOpen(key: string, byDefault: boolean): boolean {
    if (this.open.has(key)) return true;
    if (this.closed.has(key)) return false;
    return this.allOpen ?? byDefault;
  }

  private setOpen(key: string, open: boolean): void {
    (open ? this.open : this.closed).add(key);
    (open ? this.closed : this.open).delete(key);
  }

  private toggled(event: Event): void {
    const details = event.target;
    if (!(details instanceof HTMLDetailsElement)) return;
    const key = details.dataset["fold"] ?? "";
    const row = details.closest<HTMLElement>("article")?.dataset["key"] ?? "";
    if (details.open === this.isOpen(key, false)) return;
    this.setOpen(key, details.open);
    const summaryHadFocus = details.querySelector("summary") === document.activeElement;
    this.list.redraw(row);
    if (summaryHadFocus)
      this.list
        .node(row)
        ?.querySelector<HTMLElement>(`details[data-fold="${CSS.escape(key)}"] > summary`)
        ?.focus({ preventScroll: true });
    this.finder.highlight();
    this.save(true);
  }

  private openFolds(row: Row): void {
    const node = this.list.node(row.key);
    if (!node) return;
    for (let depth = 0; depth < 3; depth += 1) {
      const shut = [...(this.list.node(row.key)?.querySelectorAll<HTMLDetailsElement>("details:not([open])") ?? [])];
      if (shut.length === 0) return;
      for (const details of shut) this.setOpen(details.dataset["fold"] ?? "", true);
      this.list.redraw(row.key);
    }
  }

  private toggleAll(): void {
    this.allOpen = !this.allOpen;
    this.open.clear();
    this.closed.clear();
    this.list.redrawAll();
    const button = need("folds");
    button.setAttribute("aria-pressed", String(this.allOpen));
    this.live.textContent = this.allOpen ? "All unfolded" : "All folded";
    this.save(true);
  }

  private toggleRaw(): void {
    this.raw = !this.raw;
    this.list.redrawAll();
    this.showRaw();
    this.save(true);
  }

  private showRaw(): void {
    need("raw").setAttribute("aria-pressed", String(this.raw));
  }

  private activate(index: number, focus: boolean, where: "near" | "top" | "none" = "near"): void {
    const row = this.list.row(index);
    if (!row) return;
    if (focus && where !== "none") this.list.toRow(index, where);
    const before = this.active === undefined ? undefined : this.list.node(this.active);
    if (before) before.tabIndex = -1;
    this.active = row.key;
    const node = this.list.node(row.key);
    if (!node) return;
    node.tabIndex = 0;
    if (focus) node.focus({ preventScroll: true });
  }

  private focusActive(): void {
    const at = this.active === undefined ? this.list.length - 1 : this.list.index(this.active);
    this.activate(at, true);
  }

  private focused(event: FocusEvent): void {
    const row = (event.target as HTMLElement).closest<HTMLElement>("article")?.dataset["key"];
    if (row !== undefined && row !== this.active) this.activate(this.list.index(row), false);
  }

  private clicked(event: MouseEvent): void {
    const button = (event.target as Element).closest<HTMLElement>("[data-action]");
    if (!button) return;
    const entryId = button.dataset["entry"] ?? "";
    this.act(button.dataset["action"] ?? "", entryId);
  }

  private act(action: string, entryId: string): void {
    switch (action) {
      case "copyText":
      case "copyId":
        vscode.postMessage({ type: action, entryId });
        this.live.textContent = "Copied";
        return;
      case "fork":
      case "rewind":
      case "openWhole":
      case "load":
        return vscode.postMessage({ type: action, entryId });
      case "restore":
      case "retry":
        return vscode.postMessage({ type: action });
      case "dismiss":
        return this.showNotice("", false);
      case "close-help":
        return this.help(false);
    }
  }

  private key(event: KeyboardEvent): void {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "f") {
      event.preventDefault();
      return this.finder.show();
    }
    const target = event.target as HTMLElement;
    if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, select, textarea, [role=dialog]")) {
      if (event.key === "Escape") this.help(false);
      return;
    }
    const inside = target.closest("pre, summary, button") !== null;
    if (inside && ["ArrowUp", "ArrowDown", "Home", "End", "PageUp", "PageDown", "Enter", " "].includes(event.key)) return;
    if (this.command(event.key, event.shiftKey)) event.preventDefault();
  }

  /** Whether the key means something. */
  private command(key: string, shift: boolean): boolean {
    const at = this.active === undefined ? this.list.length - 1 : this.list.index(this.active);
    const row = this.list.row(at);
    const entryId = row?.entryId;
    switch (key) {
      case "ArrowDown":
      case "j":
        this.step(at, 1);
        return true;
      case "ArrowUp":
      case "k":
        this.step(at, -1);
        return true;
      case "Home":
      case "g":
        if (key === "g" && shift) return false;
        if (this.hasMore) {
          this.goHome = true;
          this.loadAll();
        }
        this.activate(0, true, "top");
        return true;
      case "End":
      case "G":
        this.toLatest();
        return true;
      case "Enter":
      case " ":
        if (row) this.toggleRow(row);
        return row !== undefined;
      case "o":
        this.toggleAll();
        return true;
      case "m":
        this.toggleRaw();
        return true;
      case "/":
        this.finder.show();
        return true;
      case "n":
      case "N":
        return this.finder.step(key === "n" ? 1 : -1);
      case "c":
        if (entryId) this.act("copyText", entryId);
        return true;
      case "y":
        if (entryId && !this.session.transcript) this.act("copyId", entryId);
        return true;
      case "F":
        if (entryId && !this.session.transcript) this.act("fork", entryId);
        return true;
      case "R":
        if (entryId && !this.session.transcript) this.act("rewind", entryId);
        return true;
      case "b":
        if (!need("branching").hidden) this.branchSelect.focus();
        return true;
      case "?":
        this.help(true);
        return true;
      case "Escape":
        this.finder.hide();
        this.help(false);
        return true;
      default:
        return false;
    }
  }

  /** To the next row; a row that is higher than the view is read to its end first. */
  private step(at: number, by: 1 | -1): void {
    const node = this.list.node(this.list.row(at)?.key ?? "");
    const frame = this.view.getBoundingClientRect();
    const box = node?.getBoundingClientRect();
    if (box && box.height > frame.height) {
      const left = by > 0 ? box.bottom - frame.bottom : frame.top - box.top;
      if (left > 4 && box.top < frame.bottom && box.bottom > frame.top) {
        this.view.scrollTop += by * Math.min(left + 8, frame.height * 0.8);
        return;
      }
    }
    const next = at + by;
    if (next < 0) return this.askOlder();
    if (next < this.list.length) this.activate(next, true);
  }

  private toggleRow(row: Row): void {
    const folds = [...(this.list.node(row.key)?.querySelectorAll<HTMLDetailsElement>("details") ?? [])];
    if (folds.length === 0) return;
    const open = folds.some((details) => !details.open);
    for (const details of folds) this.setOpen(details.dataset["fold"] ?? "", open);
    this.list.redraw(row.key);
    this.live.textContent = open ? "Unfolded" : "Folded";
    this.save(true);
  }

  private help(show: boolean): void {
    const help = need("help");
    if (help.hidden === !show) return;
    help.hidden = !show;
    if (show) help.querySelector<HTMLElement>("button")?.focus();
    else this.focusActive();
  }

  /** `chosen`: by somebody, who may leave the tab the next moment, and the page is gone then. Scrolling may lag behind. */
  private save(chosen = false): void {
    this.unsaved = true;
    if (chosen || this.saveTimer === undefined) this.write();
    this.saveTimer ??= setTimeout(() => {
      this.saveTimer = undefined;
      if (this.unsaved) this.write();
    }, 200);
  }

  private write(): void {
    this.unsaved = false;
    const { transcript } = this.session;
    vscode.setState({
      sessionId: this.session.id,
      ...(transcript ? { transcript } : {}),
      title: this.session.name.slice(0, 200),
      viewing: this.viewing,
      top: this.list.atEnd ? null : (this.list.topKey() ?? null),
      open: [...this.open].slice(-REMEMBERED),
      closed: [...this.closed].slice(-REMEMBERED),
      raw: this.raw,
    });
  }
}

function setText(node: HTMLElement, text: string): void {
  if (node.textContent !== text) node.textContent = text;
}

function need(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found;
}

new Page();
