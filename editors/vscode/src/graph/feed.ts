import { explain } from "../errors";
import { isLapsed } from "../model/tasks";
import type { Methods, SessionDidChange, Task, TaskDidChange } from "../protocol";
import { count } from "../text";
import type { FromGraph, ToGraph } from "./messages";
import { graphTasks } from "./model";

/** Changes that come closer together than this are shown at once, in milliseconds. */
const TOGETHER = 40;
const LONGEST_TIMER = 2 ** 31 - 1;

export interface Wire {
  request<M extends keyof Methods>(method: M, params: Methods[M]["params"]): Promise<Methods[M]["result"]>;
}

/**
 * Keeps one page supplied with one task list: whole at first, and again whenever something in it changed. It knows no VS Code: what it
 * needs is a wire and a page to post to.
 */
export class GraphFeed {
  private tasks: Map<string, Task> | undefined;
  private revision = 0;
  private notice = "";
  private subscription: string | undefined;
  private reading: Promise<void> | undefined;
  private stale = false;
  private ready = false;
  private posting: ReturnType<typeof setTimeout> | undefined;
  private lapsing: ReturnType<typeof setTimeout> | undefined;
  private disposed = false;

  constructor(
    private readonly wire: Wire,
    readonly listId: string,
    private title: string,
    private readonly post: (message: ToGraph) => void,
    private readonly onTitle: (title: string) => void = () => {},
  ) {}

  /** What of a page's messages is about reading; the rest is for the extension. */
  async handle(message: FromGraph): Promise<void> {
    if (message.type === "open") return;
    this.ready = true;
    if (this.tasks !== undefined && message.type === "ready") this.show();
    else await this.read();
  }

  /** To be told of every `task/didChange`. */
  didChange(change: TaskDidChange): void {
    if (change.listId !== this.listId) return;
    if (this.reading !== undefined || this.tasks === undefined) {
      this.stale = true; // what is being read may be older than this
      return;
    }
    if (change.revision <= this.revision) return;
    if (change.revision !== this.revision + 1) {
      void this.read(); // something was missed
      return;
    }
    for (const task of change.changed) this.tasks.set(task.id, task);
    for (const id of change.removed) this.tasks.delete(id);
    this.revision = change.revision;
    this.showSoon();
  }

  /** To be told of every `session/didChange`: a list is mostly a session's, and has its name. */
  sessionDidChange({ session, change }: SessionDidChange): void {
    if (session.id !== this.listId || change === "deleted") return;
    const title = session.name || session.firstMessage;
    if (!title || title === this.title) return;
    this.title = title;
    this.onTitle(title);
    this.showSoon();
  }

  /** After another server took over: asks it to tell of changes, and reads what was missed. */
  async reconnected(): Promise<void> {
    this.subscription = undefined;
    if (!this.ready) return;
    this.stale = true;
    await this.read();
  }

  async dispose(): Promise<void> {
    this.disposed = true;
    clearTimeout(this.posting);
    clearTimeout(this.lapsing);
    const subscriptionId = this.subscription;
    this.subscription = undefined;
    // The server may be gone, and its subscriptions with it.
    if (subscriptionId) await this.wire.request("unsubscribe", { subscriptionId }).catch(() => undefined);
  }

  private read(): Promise<void> {
    this.reading ??= (async () => {
      try {
        do {
          this.stale = false;
          await this.subscribe();
          const { items, revision, skipped } = await this.wire.request("task/list", { listId: this.listId });
          this.tasks = new Map(items.map((task) => [task.id, task]));
          this.revision = revision;
          const files = skipped?.length ?? 0;
          this.notice = files > 0 ? `${count(files, "file")} of this list cannot be read and ${files === 1 ? "is" : "are"} not shown.` : "";
        } while (this.stale && !this.disposed);
        this.show();
      } catch (error) {
        if (this.disposed) return;
        // A server that went away comes back by itself, and `reconnected` is called then.
        const text = explain(error);
        this.post(this.tasks === undefined ? { type: "failed", text } : { type: "notice", text });
      } finally {
        this.reading = undefined;
      }
    })();
    return this.reading;
  }

  /** A list may be of another project than the window's, of which the server would not tell by itself. */
  private async subscribe(): Promise<void> {
    if (this.subscription) return;
    const params = { topics: ["task" as const, "session" as const], listIds: [this.listId], sessionIds: [this.listId] };
    this.subscription = (await this.wire.request("subscribe", params)).subscriptionId;
  }

  private showSoon(): void {
    this.posting ??= setTimeout(() => this.show(), TOGETHER);
  }

  private show(): void {
    clearTimeout(this.posting);
    this.posting = undefined;
    if (this.disposed || !this.ready || this.tasks === undefined) return;
    const now = Date.now();
    this.post({ type: "tasks", listId: this.listId, title: this.title, tasks: graphTasks(this.tasks, now), notice: this.notice });
    this.showWhenLapsed(now);
  }

  /** A lease lapses without anybody telling. */
  private showWhenLapsed(now: number): void {
    clearTimeout(this.lapsing);
    let next = Number.POSITIVE_INFINITY;
    for (const task of this.tasks?.values() ?? []) {
      if (task.status !== "completed" && task.claim?.expiresAt && !isLapsed(task, now))
        next = Math.min(next, Date.parse(task.claim.expiresAt));
    }
    if (Number.isFinite(next)) this.lapsing = setTimeout(() => this.show(), Math.min(Math.max(next - now + 50, 0), LONGEST_TIMER));
  }
}
