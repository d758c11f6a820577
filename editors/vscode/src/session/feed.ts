import { CrewError, explain } from "../errors";
import type { Branch, EntriesResult, Entry, Methods, SessionDidChange } from "../protocol";
import type { FromPage, PageSession, ToPage } from "./messages";
import { type PageEntry, shrink } from "./shrink";

/** Entries of the first page, and of each that is asked for by scrolling. */
const PAGE = 300;
/** Entries of each page when all are wanted. */
const LARGE_PAGE = 2000;
/** Bytes of a page. An entry over it comes without its data. */
const PAGE_BYTES = 1_000_000;
const LARGE_PAGE_BYTES = 4_000_000;

export interface Wire {
  request<M extends keyof Methods>(method: M, params: Methods[M]["params"]): Promise<Methods[M]["result"]>;
}

/** What supplies a page. */
export interface PageFeed {
  /** What of a page's messages is about reading; the rest is for the extension. */
  handle(message: FromPage): Promise<void>;
  /** One entry with all of its data. */
  entry(entryId: string): Promise<Entry>;
  /** Another server took over. */
  reconnected(): void;
  dispose(): Promise<void>;
}

/**
 * Keeps one page supplied with one session: its end first, what is older when asked, what is new when told. It knows no VS Code: what it
 * needs is a wire and a page to post to. Reads happen one after the other, so that pages never overlap.
 */
export class SessionFeed implements PageFeed {
  private viewing: string | null = null;
  private first = "";
  private last = "";
  private hasMore = false;
  private shown = false;
  private subscription: string | undefined;
  private work: Promise<void> = Promise.resolve();
  private changed = false;
  /** Whether the page has asked: until then there is nobody to be told, and what is new is read with the rest. */
  private ready = false;
  private disposed = false;

  constructor(
    private readonly wire: Wire,
    readonly sessionId: string,
    private readonly post: (message: ToPage) => void,
    private readonly onTitle: (title: string) => void = () => {},
  ) {}

  handle(message: FromPage): Promise<void> {
    switch (message.type) {
      case "ready":
        this.ready = true;
        return this.queue(() => this.reset(message.viewing ?? null, "", message.scrollTo ?? null));
      case "retry":
        return this.queue(() => this.reset(this.viewing, "", null));
      case "branch":
        return this.queue(() => this.reset(message.leafId, "", null));
      case "older":
        return this.queue(() => this.older(PAGE, PAGE_BYTES));
      case "all":
        return this.loadAll();
      case "load":
        return this.queue(async () => this.post({ type: "entry", entry: shrink(await this.entry(message.entryId)) }));
      default:
        return Promise.resolve();
    }
  }

  async entry(entryId: string): Promise<Entry> {
    const page = await this.wire.request("session/entries", { sessionId: this.sessionId, leafId: entryId, limit: 1 });
    const entry = page.entries[0];
    if (!entry) throw new Error(`Entry ${entryId} is not there any more.`);
    return entry;
  }

  /** To be told of every `session/didChange`. */
  didChange(change: SessionDidChange): void {
    if (change.session.id !== this.sessionId) return;
    if (change.change === "deleted") {
      this.post({ type: "notice", text: "This session was deleted. What you see is what was read before.", restore: true });
      return;
    }
    if (change.change === "replaced") {
      void this.queue(() => this.reset(this.viewing, "The session's file was replaced; it was read anew.", null));
      return;
    }
    this.readNew();
  }

  /** After another server took over: asks it to tell of changes, and reads what was missed. */
  reconnected(): void {
    this.subscription = undefined;
    void this.queue(async () => {
      if (!this.shown) return this.reset(this.viewing, "", null);
      await this.subscribe();
    });
    this.readNew();
  }

  /** Bursts of changes are read at once: while a read is due, another need not be. */
  private readNew(): void {
    if (this.changed || !this.ready) return;
    this.changed = true;
    void this.queue(async () => {
      this.changed = false;
      if (this.shown) await this.newer();
      else await this.reset(this.viewing, "", null);
    });
  }

  async dispose(): Promise<void> {
    this.disposed = true;
    const subscriptionId = this.subscription;
    this.subscription = undefined;
    // The server may be gone, and its subscriptions with it.
    if (subscriptionId) await this.wire.request("unsubscribe", { subscriptionId }).catch(() => undefined);
  }

  private queue(step: () => Promise<void>): Promise<void> {
    const run = async () => {
      if (this.disposed) return;
      try {
        await step();
      } catch (error) {
        this.failed(error);
      }
    };
    this.work = this.work.then(run);
    return this.work;
  }

  private failed(error: unknown): void {
    const gone = error instanceof CrewError && error.kind === "sessionNotFound";
    this.post({ type: this.shown && !gone ? "notice" : "failed", text: explain(error), restore: gone });
    if (gone) this.shown = false;
  }

  private async reset(viewing: string | null, notice: string, scrollTo: string | null): Promise<void> {
    await this.subscribe();
    const opened = await this.wire.request("session/open", { sessionId: this.sessionId });
    const branches = await this.branches();
    const leaf = viewing !== null && viewing !== opened.leafId ? viewing : null;
    let page: EntriesResult;
    try {
      page = await this.read({ ...(leaf ? { leafId: leaf } : {}) }, PAGE, PAGE_BYTES);
    } catch (error) {
      if (leaf === null || !isGone(error)) throw error;
      return this.reset(null, "The branch that was shown is not there any more.", null);
    }
    this.viewing = leaf;
    const entries = page.entries;
    this.first = entries[0]?.id ?? "";
    this.last = page.leafId;
    this.hasMore = page.hasMore;
    let broken = page.broken ?? null;
    while (scrollTo !== null && this.hasMore && !entries.some((entry) => entry.id === scrollTo)) {
      const more = await this.read({ before: this.first, leafId: this.last }, LARGE_PAGE, LARGE_PAGE_BYTES);
      entries.unshift(...more.entries);
      this.first = entries[0]?.id ?? "";
      this.hasMore = more.hasMore;
      broken = more.broken ?? broken;
    }
    const torn = opened.recovered;
    const tail = torn ? `The last line (line ${torn.line}, ${torn.size} bytes) was cut off while it was written; it is not shown.` : "";
    this.shown = true;
    this.onTitle(opened.session.name || opened.session.firstMessage || opened.session.id);
    this.post({
      type: "reset",
      session: about(opened.session),
      entries: entries.map(shrink),
      hasMore: this.hasMore,
      total: page.total,
      viewing: leaf,
      broken,
      branches,
      notice: [notice, tail].filter(Boolean).join(" "),
      scrollTo,
    });
  }

  private async older(limit: number, maxBytes: number): Promise<void> {
    if (!this.hasMore) return;
    const page = await this.read({ before: this.first, leafId: this.last }, limit, maxBytes);
    this.first = page.entries[0]?.id ?? this.first;
    this.hasMore = page.hasMore && page.entries.length > 0;
    this.post({ type: "older", entries: page.entries.map(shrink), hasMore: this.hasMore, total: page.total, broken: page.broken ?? null });
  }

  /** Page after page, each a step of its own, so that what is new does not wait for what is old. */
  private async loadAll(): Promise<void> {
    let before: string | undefined;
    while (this.hasMore && !this.disposed && before !== this.first) {
      before = this.first;
      await this.queue(() => this.older(LARGE_PAGE, LARGE_PAGE_BYTES));
    }
  }

  private async newer(): Promise<void> {
    const last = this.last;
    let more = this.viewing === null;
    let total = 0;
    const added: PageEntry[] = [];
    while (more) {
      let page: EntriesResult;
      try {
        page = await this.read({ after: this.last }, LARGE_PAGE, LARGE_PAGE_BYTES);
      } catch (error) {
        if (!isGone(error)) throw error;
        return this.reset(null, "The session was taken back to an earlier entry. What followed it is a branch of its own now.", null);
      }
      added.push(...page.entries.map(shrink));
      this.last = page.entries.at(-1)?.id ?? this.last;
      total = page.total;
      more = page.hasMore && page.entries.length > 0;
    }
    if (added.length > 0 && this.last !== last) this.post({ type: "newer", entries: added, total });
    const opened = await this.wire.request("session/open", { sessionId: this.sessionId });
    this.onTitle(opened.session.name || opened.session.firstMessage || opened.session.id);
    this.post({ type: "about", session: about(opened.session), branches: await this.branches() });
  }

  private read(where: { after?: string; before?: string; leafId?: string }, limit: number, maxBytes: number): Promise<EntriesResult> {
    return this.wire.request("session/entries", { sessionId: this.sessionId, limit, maxBytes, ...where });
  }

  private async branches(): Promise<Branch[]> {
    return (await this.wire.request("session/branches", { sessionId: this.sessionId })).branches;
  }

  /** A session may be of another project than the window's, of which the server would not tell by itself. */
  private async subscribe(): Promise<void> {
    if (this.subscription) return;
    const params = { topics: ["session" as const], sessionIds: [this.sessionId] };
    this.subscription = (await this.wire.request("subscribe", params)).subscriptionId;
  }
}

function isGone(error: unknown): boolean {
  return error instanceof CrewError && error.kind === "entryNotFound";
}

function about(session: { id: string; name: string; cwd: string; updated: string; firstMessage: string }): PageSession {
  return { id: session.id, name: session.name || session.firstMessage, cwd: session.cwd, updated: session.updated };
}
