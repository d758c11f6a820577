import { explain } from "../errors";
import type { Entry, Json, TranscriptPage } from "../protocol";
import type { PageFeed, Wire } from "./feed";
import type { FromPage, PageSession, ToPage } from "./messages";
import { shrink } from "./shrink";

/** Messages of the first page, and of each that is asked for by scrolling. */
const PAGE = 200;
/** Messages of each page when all are wanted. */
const LARGE_PAGE = 1000;

/**
 * Keeps one page supplied with the transcript of one member of a team, message by message as it is on disk. Messages have no ids: they are
 * known by their number. Nobody tells of a transcript that grows: `look` is to be called now and then. Knows no VS Code.
 */
export class TranscriptFeed implements PageFeed {
  /** Numbers of the first message that the page has, and of the one after its last. */
  private first = 0;
  private end = 0;
  private shown = false;
  private looking = false;
  private work: Promise<void> = Promise.resolve();
  private disposed = false;

  constructor(
    private readonly wire: Wire,
    readonly listId: string,
    readonly agent: string,
    private readonly post: (message: ToPage) => void,
  ) {}

  handle(message: FromPage): Promise<void> {
    switch (message.type) {
      case "ready":
        return this.queue(() => this.reset("", message.scrollTo ?? null));
      case "retry":
        return this.queue(() => this.reset("", null));
      case "older":
        return this.queue(() => this.older(PAGE));
      case "all":
        return this.loadAll();
      case "load":
        return this.queue(async () => this.post({ type: "entry", entry: shrink(await this.entry(message.entryId)) }));
      default:
        return Promise.resolve();
    }
  }

  async entry(entryId: string): Promise<Entry> {
    const number = Number(entryId);
    const [message] = (await this.read(number, 1)).messages;
    if (!message) throw new Error(`Message ${number + 1} is not there any more.`);
    return entryOf(message, number);
  }

  /** Reads what came meanwhile. To be called now and then while the page is seen, and after another server took over. */
  look(): void {
    if (this.looking) return;
    this.looking = true;
    void this.queue(async () => {
      this.looking = false;
      if (this.shown) await this.newer();
      else await this.reset("", null);
    });
  }

  reconnected(): void {
    this.look();
  }

  async dispose(): Promise<void> {
    this.disposed = true;
  }

  private queue(step: () => Promise<void>): Promise<void> {
    const run = async () => {
      if (this.disposed) return;
      try {
        await step();
      } catch (error) {
        const text = explain(error);
        this.post(this.shown ? { type: "notice", text } : { type: "failed", text, what: "transcript" });
      }
    };
    this.work = this.work.then(run);
    return this.work;
  }

  private async reset(notice: string, scrollTo: string | null): Promise<void> {
    // How many there are is told with any page: the last one is asked for then.
    const { total } = await this.read(0, 1);
    const wanted = scrollTo === null ? total : Number(scrollTo);
    this.first = Math.max(0, Math.min(total - PAGE, Number.isFinite(wanted) ? wanted : total));
    const entries = await this.entries(this.first, total);
    this.end = this.first + entries.length;
    this.shown = true;
    this.post({
      type: "reset",
      session: this.about(),
      entries: entries.map(shrink),
      hasMore: this.first > 0,
      total: Math.max(total, this.end),
      viewing: null,
      broken: null,
      branches: [],
      notice,
      scrollTo,
    });
  }

  private async older(limit: number): Promise<void> {
    if (this.first === 0) return;
    const from = Math.max(0, this.first - limit);
    const entries = await this.entries(from, this.first);
    this.first = from;
    this.post({ type: "older", entries: entries.map(shrink), hasMore: from > 0, total: this.end, broken: null });
  }

  /** Page after page, each a step of its own, so that what is new does not wait for what is old. */
  private async loadAll(): Promise<void> {
    while (this.first > 0 && !this.disposed) {
      const before = this.first;
      await this.queue(() => this.older(LARGE_PAGE));
      if (this.first === before) return; // it failed, and was told
    }
  }

  private async newer(): Promise<void> {
    const { messages, total } = await this.read(this.end, LARGE_PAGE);
    if (total < this.end) return this.reset("The transcript was begun anew.", null);
    if (messages.length === 0) return;
    const entries = messages.map((message, at) => shrink(entryOf(message, this.end + at)));
    this.end += messages.length;
    this.post({ type: "newer", entries, total: Math.max(total, this.end) });
    if (this.end < total) await this.newer();
  }

  private async entries(from: number, to: number): Promise<Entry[]> {
    const entries: Entry[] = [];
    while (from + entries.length < to) {
      const at = from + entries.length;
      const { messages } = await this.read(at, Math.min(LARGE_PAGE, to - at));
      if (messages.length === 0) break;
      entries.push(...messages.map((message, index) => entryOf(message, at + index)));
    }
    return entries;
  }

  private read(offset: number, limit: number): Promise<TranscriptPage> {
    return this.wire.request("transcript/load", { listId: this.listId, agent: this.agent, offset, limit });
  }

  private about(): PageSession {
    const { listId, agent } = this;
    return { id: "", name: `Transcript of ${agent}`, cwd: "", updated: "", transcript: { listId, agent } };
  }
}

function entryOf(message: TranscriptPage["messages"][number], number: number): Entry {
  return { kind: "message", id: String(number), timestamp: message.timestamp ?? "", data: message as unknown as Json } as Entry;
}
