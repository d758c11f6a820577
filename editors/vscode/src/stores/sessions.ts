import type { Crew } from "../crew";
import { newestFirst } from "../model/order";
import type { SessionFacts } from "../model/sessions";
import type { SessionInfo, Skipped } from "../protocol";
import { Coalesced, Emitter } from "./emitter";
import { isShown, type Scope, showsAll } from "./scope";

const PAGE = 200;
/** Sessions whose model is asked for at a time. */
const AT_ONCE = 8;

/** The sessions of this window's projects, newest first (see `newestFirst`), as far as they were asked for. */
export class Sessions {
  private readonly changed = new Emitter();
  private readonly refreshing: Coalesced;
  private readonly learning: Coalesced;
  private readonly known = new Map<string, { updated: string; facts: SessionFacts }>();
  private byId = new Map<string, SessionInfo>();
  private limit = PAGE;
  private readonly subscriptions: { dispose(): void }[];

  readonly onDidChange = this.changed.event;
  skipped: Skipped[] = [];
  more = false;
  loaded = false;
  tried = false;

  constructor(
    private readonly crew: Crew,
    private readonly scope: () => Scope,
    failed: (error: unknown) => void,
  ) {
    const tried = (error: unknown) => {
      this.tried = true;
      failed(error);
      this.changed.fire();
    };
    this.refreshing = new Coalesced(() => this.read(), tried);
    this.learning = new Coalesced(() => this.learn(), failed, 300);
    this.subscriptions = [
      crew.onDidReconnect(() => void this.refresh()),
      crew.onNotification("session/didChange", ({ session, change }) => {
        if (change === "deleted") this.byId.delete(session.id);
        else if (isShown(session, this.scope())) this.byId.set(session.id, session);
        else return;
        this.changed.fire();
        void this.learning.request();
      }),
    ];
  }

  dispose(): void {
    for (const subscription of this.subscriptions) subscription.dispose();
  }

  all(): SessionInfo[] {
    const placeOf = ({ id, updated, created }: SessionInfo) => ({ id, changed: updated, begun: created });
    return newestFirst(this.byId.values(), placeOf, Date.now());
  }

  get(sessionId: string): SessionInfo | undefined {
    return this.byId.get(sessionId);
  }

  get facts(): ReadonlyMap<string, SessionFacts> {
    return new Map([...this.known].map(([id, { facts }]) => [id, facts]));
  }

  refresh(): Promise<void> {
    return this.refreshing.request();
  }

  showMore(): Promise<void> {
    this.limit += PAGE;
    return this.refresh();
  }

  /** Where to search: one folder's project can be named, several cannot. */
  where(): { cwd?: string; allProjects?: boolean } {
    const scope = this.scope();
    const [folder] = scope.folders;
    return showsAll(scope) || scope.folders.length > 1 || folder === undefined ? { allProjects: true } : { cwd: folder };
  }

  shows(session: SessionInfo): boolean {
    return isShown(session, this.scope());
  }

  private async read(): Promise<void> {
    const scope = this.scope();
    const asked = showsAll(scope) ? [{ allProjects: true }] : scope.folders.map((cwd) => ({ cwd }));
    const pages = await Promise.all(asked.map((params) => this.crew.request("session/list", { ...params, limit: this.limit })));
    this.byId = new Map(pages.flatMap(({ sessions }) => sessions).map((session) => [session.id, session]));
    this.skipped = pages.flatMap(({ skipped }) => skipped ?? []);
    this.more = pages.some(({ nextCursor }) => Boolean(nextCursor));
    this.loaded = this.tried = true;
    this.changed.fire();
    void this.learning.request();
  }

  /** Model and cost, which a list does not tell, of those sessions that changed since. */
  private async learn(): Promise<void> {
    const stale = this.all().filter((session) => this.known.get(session.id)?.updated !== session.updated);
    for (let i = 0; i < stale.length; i += AT_ONCE) {
      await Promise.all(stale.slice(i, i + AT_ONCE).map((session) => this.learnOf(session)));
      this.changed.fire();
    }
  }

  private async learnOf(session: SessionInfo): Promise<void> {
    try {
      const [{ entries }, stats] = await Promise.all([
        this.crew.request("session/entries", { sessionId: session.id, kinds: ["model_change"], limit: 1 }),
        this.crew.request("session/stats", { sessionId: session.id }),
      ]);
      const data = entries.at(-1)?.data as { model?: unknown } | null | undefined;
      const called = Object.entries(stats.byModel).sort(([, a], [, b]) => b.calls - a.calls)[0]?.[0];
      const model = typeof data?.model === "string" && data.model !== "" ? data.model : called;
      this.known.set(session.id, { updated: session.updated, facts: { ...(model ? { model } : {}), cost: stats.total.cost } });
    } catch {
      // a damaged or deleted session is listed without them; opening it says why
      this.known.set(session.id, { updated: session.updated, facts: {} });
    }
  }
}
