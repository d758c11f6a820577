import type { Crew } from "../crew";
import { explain } from "../errors";
import { newestFirst, type Place } from "../model/order";
import type { TaskList } from "../model/tasks";
import type { Team } from "../model/team";
import type { Roster, Task, TaskDidChange, TaskListInfo } from "../protocol";
import { Coalesced, Emitter } from "./emitter";
import { isShown, type Scope } from "./scope";

/** Teams whose transcripts are looked at again and again. */
const LOOKED_AT = 20;

interface Entry extends TaskList {
  tasks: Map<string, Task> | undefined;
  /** Of the last notification that is in `tasks`. */
  revision: number;
  loading: Promise<void> | undefined;
  roster: Roster | undefined;
  transcripts: Map<string, number>;
}

function placeOf({ listId, modified, session }: Entry): Place {
  return { id: listId, changed: modified, begun: session?.created ?? "" };
}

/**
 * The task lists and teams of this window's projects, kept current by what the server tells. Tasks are read when a list is first asked
 * for. After a reconnect everything is read anew; until it is there, what was there stays.
 */
export class Board {
  private readonly changed = new Emitter();
  private readonly refreshing: Coalesced;
  private entries = new Map<string, Entry>();
  private foreign = new Set<string>();
  private chosen: string | undefined;
  /** Lists that changed while all are being read anew. */
  private changedMeanwhile: Set<string> | undefined;
  private readonly subscriptions: { dispose(): void }[];

  /** Something is to be shown differently. */
  readonly onDidChange = this.changed.event;
  /** Whether the lists were read at least once; `tried`: whether that has at least been attempted. */
  loaded = false;
  tried = false;

  constructor(
    private readonly crew: Crew,
    private readonly scope: () => Scope,
    private readonly failed: (error: unknown) => void,
  ) {
    const tried = (error: unknown) => {
      this.tried = true;
      failed(error);
      this.changed.fire();
    };
    this.refreshing = new Coalesced(() => this.read(), tried);
    this.subscriptions = [
      crew.onDidReconnect(() => void this.refresh()),
      crew.onNotification("task/didChange", (change) => this.apply(change)),
      crew.onNotification("roster/didChange", ({ listId, roster }) => {
        const entry = this.entries.get(listId);
        if (entry === undefined) {
          this.unknown(listId);
          return;
        }
        entry.roster = roster;
        this.changed.fire();
      }),
      crew.onNotification("session/didChange", ({ session, change }) => {
        const entry = this.entries.get(session.id);
        if (change === "deleted") {
          if (this.entries.delete(session.id)) this.changed.fire();
        } else if (entry !== undefined) {
          const renamed = entry.session?.name !== session.name || entry.session.firstMessage !== session.firstMessage;
          entry.session = session;
          if (renamed) this.changed.fire();
        } else if (change === "created" && isShown(session, this.scope())) {
          this.foreign.delete(session.id);
          void this.refresh(); // it may have come back with its tasks and team
        }
      }),
    ];
  }

  dispose(): void {
    for (const subscription of this.subscriptions) subscription.dispose();
  }

  /** The lists, the last changed first; see `newestFirst`. */
  lists(): TaskList[] {
    return newestFirst(this.entries.values(), placeOf, Date.now());
  }

  list(listId: string): TaskList | undefined {
    return this.entries.get(listId);
  }

  teams(): Team[] {
    return newestFirst(this.entries.values(), placeOf, Date.now())
      .filter((entry) => entry.roster !== undefined)
      .map((entry) => ({ list: entry, roster: entry.roster ?? { team: "" }, transcripts: entry.transcripts }));
  }

  /** The list that the status bar shows: the one that was chosen, else the last changed one that has tasks. */
  active(): TaskList | undefined {
    const chosen = this.chosen === undefined ? undefined : this.entries.get(this.chosen);
    return chosen ?? this.lists().find((list) => list.counts.total > 0);
  }

  choose(listId: string | undefined): void {
    this.chosen = listId;
    this.changed.fire();
  }

  refresh(): Promise<void> {
    return this.refreshing.request();
  }

  /** Reads the tasks of a list if that was not tried yet. Never rejects: the list has a `problem` then, until something changes in it. */
  async load(listId: string): Promise<void> {
    const entry = this.entries.get(listId);
    if (entry !== undefined && entry.tasks === undefined && entry.problem === undefined) await this.readTasks(entry);
  }

  /** Reads how many messages the transcripts of the teams have: the server tells nobody of those. */
  async lookAtTranscripts(): Promise<void> {
    const teams = [...this.entries.values()].filter(({ roster, transcripts }) => roster?.members?.length || transcripts.size > 0);
    await Promise.all(
      teams.slice(0, LOOKED_AT).map(async (entry) => {
        try {
          const { agents } = await this.crew.request("transcript/list", { listId: entry.listId });
          const same =
            agents.length === entry.transcripts.size && agents.every(({ agent, count }) => entry.transcripts.get(agent) === count);
          if (same) return;
          entry.transcripts = new Map(agents.map(({ agent, count }) => [agent, count]));
          this.changed.fire();
        } catch (error) {
          this.failed(error);
        }
      }),
    );
  }

  private apply(change: TaskDidChange): void {
    this.changedMeanwhile?.add(change.listId);
    const entry = this.entries.get(change.listId);
    if (entry === undefined) {
      this.unknown(change.listId);
      return;
    }
    entry.counts = change.counts;
    entry.modified = new Date().toISOString();
    if (entry.loading !== undefined) {
      void entry.loading.then(() => this.readTasks(entry)); // what is being read may be older than this
    } else if (entry.problem !== undefined) {
      void this.readTasks(entry);
    } else if (entry.tasks !== undefined && change.revision > entry.revision) {
      if (change.revision === entry.revision + 1) {
        for (const task of change.changed) entry.tasks.set(task.id, task);
        for (const id of change.removed) entry.tasks.delete(id);
        entry.revision = change.revision;
      } else {
        void this.readTasks(entry); // something was missed
      }
    }
    this.changed.fire();
  }

  private unknown(listId: string): void {
    if (!this.foreign.has(listId)) void this.refresh();
  }

  private async read(): Promise<void> {
    this.changedMeanwhile = new Set();
    const scope = this.scope();
    const { lists } = await this.crew.request("task/lists", {});
    const shown = lists.filter(({ session }) => session == null || isShown(session, scope));
    this.foreign = new Set(lists.filter((info) => !shown.includes(info)).map(({ listId }) => listId));
    const before = this.entries;
    const entries = new Map(shown.map((info) => [info.listId, this.entry(info, before.get(info.listId))]));
    const asked = [...entries.values()];
    await Promise.all(
      asked.filter((entry) => before.get(entry.listId)?.tasks !== undefined || shown.length <= 20).map((entry) => this.readTasks(entry)),
    );
    this.entries = entries;
    this.loaded = this.tried = true;
    this.changed.fire();
    await Promise.all(asked.map((entry) => this.readTeam(entry)));
    const stale = [...this.changedMeanwhile].map((listId) => entries.get(listId)).filter((entry) => entry?.tasks !== undefined);
    this.changedMeanwhile = undefined;
    await Promise.all(stale.map((entry) => entry && this.readTasks(entry)));
    const active = this.active();
    if (active !== undefined) await this.load(active.listId);
    // the members of a team are shown with what they work on
    await Promise.all(this.teams().map(({ list, roster }) => (roster.members?.length ? this.load(list.listId) : undefined)));
    this.changed.fire();
  }

  private entry(info: TaskListInfo, before: Entry | undefined): Entry {
    const base = { listId: info.listId, session: info.session ?? null, counts: info.counts, modified: info.modified };
    return {
      ...base,
      tasks: undefined,
      revision: before?.revision ?? 0,
      loading: undefined,
      roster: before?.roster,
      transcripts: before?.transcripts ?? new Map(),
    };
  }

  private readTasks(entry: Entry): Promise<void> {
    entry.loading ??= (async () => {
      try {
        const { items, counts, revision } = await this.crew.request("task/list", { listId: entry.listId });
        entry.tasks = new Map(items.map((task) => [task.id, task]));
        entry.counts = counts;
        entry.revision = revision;
        entry.problem = undefined;
      } catch (error) {
        entry.problem = explain(error);
        this.failed(error);
      } finally {
        entry.loading = undefined;
      }
      this.changed.fire();
    })();
    return entry.loading;
  }

  private async readTeam(entry: Entry): Promise<void> {
    try {
      const [roster, { agents }] = await Promise.all([
        this.crew.request("roster/get", { listId: entry.listId }),
        this.crew.request("transcript/list", { listId: entry.listId }),
      ]);
      entry.roster = roster;
      entry.transcripts = new Map(agents.map(({ agent, count }) => [agent, count]));
    } catch (error) {
      this.failed(error); // a team that cannot be read does not hide the tasks
    }
  }
}
