import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { Crew, CrewState } from "../src/crew";
import { CrewError } from "../src/errors";
import type { Capabilities, Methods, Notifications, SessionInfo, Task } from "../src/protocol";
import { Board } from "../src/stores/board";
import { Coalesced, Emitter } from "../src/stores/emitter";
import { isShown, makeScope, projectId } from "../src/stores/scope";
import { Sessions } from "../src/stores/sessions";

type Answers = { [M in keyof Methods]?: (params: Methods[M]["params"]) => Methods[M]["result"] | Promise<Methods[M]["result"]> };

/** A server that answers from functions and tells what a test says. */
class Played implements Crew {
  private readonly handlers = new Map<string, Set<(params: never) => void>>();
  private readonly stateChanged = new Emitter<CrewState>();
  private readonly reconnected = new Emitter();
  readonly asked: string[] = [];
  state: CrewState = "ready";
  capabilities: Capabilities | undefined;
  onDidChangeState = this.stateChanged.event as Crew["onDidChangeState"];
  onDidReconnect = this.reconnected.event as Crew["onDidReconnect"];

  constructor(readonly answers: Answers) {}

  async request<M extends keyof Methods>(method: M, params: Methods[M]["params"]): Promise<Methods[M]["result"]> {
    this.asked.push(method);
    const answer = this.answers[method] as ((params: Methods[M]["params"]) => Methods[M]["result"]) | undefined;
    if (answer === undefined) throw new CrewError("methodNotFound" as never, method);
    return answer(params);
  }

  onNotification<N extends keyof Notifications>(method: N, handler: (params: Notifications[N]) => void) {
    const handlers = this.handlers.get(method) ?? new Set();
    this.handlers.set(method, handlers.add(handler as (params: never) => void));
    return { dispose: () => handlers.delete(handler as (params: never) => void) };
  }

  tell<N extends keyof Notifications>(method: N, params: Notifications[N]): void {
    for (const handler of this.handlers.get(method) ?? []) handler(params as never);
  }

  reconnect(): void {
    this.reconnected.fire();
  }
}

const session = (id: string, cwd = "/p"): SessionInfo => ({
  id,
  name: id,
  path: `/home/projects/${projectId(cwd)}/${id}.jsonl`,
  cwd,
  created: "2026-03-04T12:00:00Z",
  updated: "2026-03-04T12:00:00Z",
  messageCount: 0,
  firstMessage: "",
});
const task = (id: string, fields: Partial<Task> = {}): Task => ({
  id,
  subject: id,
  status: "pending",
  blocks: [],
  blockedBy: [],
  ...fields,
});
const counts = (total: number) => ({ pending: total, inProgress: 0, completed: 0, total });
const fail = (error: unknown) => assert.fail(String(error));

async function until(what: string, holds: () => boolean): Promise<void> {
  for (const end = Date.now() + 10_000; !holds(); ) {
    if (Date.now() > end) throw new Error(`waited in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** A board of one list "s1" of this project, one of another project, and one of no session. */
function playedBoard(tasks: Task[], failed: (error: unknown) => void = fail) {
  const state = { revision: 1, tasks, sessions: [session("s1")] };
  const crew = new Played({
    "task/lists": () => ({
      lists: [
        ...state.sessions.map((one) => ({
          listId: one.id,
          counts: counts(state.tasks.length),
          modified: "2026-03-04T12:00:00Z",
          session: one,
        })),
        { listId: "s2", counts: counts(1), modified: "2026-03-04T13:00:00Z", session: session("s2", "/elsewhere") },
        { listId: "board", counts: counts(0), modified: "2026-03-04T11:00:00Z" },
      ],
    }),
    "task/list": ({ listId }) => ({
      items: listId === "s1" ? state.tasks : [],
      counts: counts(state.tasks.length),
      revision: state.revision,
    }),
    "roster/get": ({ listId }) => ({
      team: "",
      ...(listId === "s1" ? { team: "t", members: [{ name: "ada", agent_type: "coder" }] } : {}),
    }),
    "transcript/list": () => ({ agents: [] }),
  });
  const board = new Board(crew, () => makeScope(["/p"], false), failed);
  const ids = (listId = "s1") => [...(board.list(listId)?.tasks?.keys() ?? [])];
  return { crew, board, state, ids };
}

test("a board has the lists of its projects and those of no session", async () => {
  const { board, ids } = playedBoard([task("1")]);
  await board.refresh();
  assert.deepEqual(
    board.lists().map(({ listId }) => listId),
    ["s1", "board"],
  );
  assert.deepEqual(ids(), ["1"]);
  assert.equal(board.active()?.listId, "s1");
  assert.deepEqual(
    board
      .teams()
      .filter(({ roster }) => roster.team)
      .map(({ list }) => list.listId),
    ["s1"],
  );
});

test("what is told is shown without asking again; what was missed is asked for", async () => {
  const { crew, board, state, ids } = playedBoard([task("1")]);
  await board.refresh();
  const asked = crew.asked.length;
  crew.tell("task/didChange", { listId: "s1", revision: 2, changed: [task("2")], removed: ["1"], counts: counts(1) });
  assert.deepEqual(ids(), ["2"]);
  assert.equal(crew.asked.length, asked);
  crew.tell("task/didChange", { listId: "s1", revision: 2, changed: [task("old")], removed: [], counts: counts(1) });
  assert.deepEqual(ids(), ["2"], "what is known already changes nothing");
  state.tasks = [task("2"), task("3"), task("4")];
  state.revision = 4;
  crew.tell("task/didChange", { listId: "s1", revision: 4, changed: [task("4")], removed: [], counts: counts(3) });
  await until("the list was read anew", () => ids().length === 3);
});

test("changes while a list is being read are not lost", async () => {
  const { crew, board, state, ids } = playedBoard([task("1")]);
  const list = crew.answers["task/list"];
  let go = () => {};
  let held = false;
  crew.answers["task/list"] = async (params) => {
    assert.ok(list);
    const old = await list(params);
    if (params.listId !== "s1" || held) return old;
    held = true;
    await new Promise<void>((resolve) => {
      go = resolve;
    });
    return old;
  };
  const refreshed = board.refresh();
  await until("it is being read", () => held);
  state.tasks = [task("1"), task("2")];
  state.revision = 2;
  crew.tell("task/didChange", { listId: "s1", revision: 2, changed: [task("2")], removed: [], counts: counts(2) });
  go();
  await refreshed;
  await until("the change is shown", () => ids().length === 2);
});

test("lists of other projects make nothing be read, a new list of this one does", async () => {
  const { crew, board, state } = playedBoard([task("1")]);
  await board.refresh();
  const asked = crew.asked.length;
  crew.tell("task/didChange", { listId: "s2", revision: 2, changed: [], removed: [], counts: counts(1) });
  await new Promise((resolve) => setTimeout(resolve, 120));
  assert.equal(crew.asked.length, asked);
  state.sessions = [session("s1"), session("s3")];
  crew.tell("task/didChange", { listId: "s3", revision: 1, changed: [task("1")], removed: [], counts: counts(1) });
  await until("the new list is there", () => board.list("s3") !== undefined);
});

test("a deleted session takes its list along, and brings it back when it is restored", async () => {
  const { crew, board, ids } = playedBoard([task("1")]);
  await board.refresh();
  crew.tell("session/didChange", { session: session("s1"), leafId: "", entries: 0, change: "deleted" });
  assert.equal(board.list("s1"), undefined);
  crew.tell("session/didChange", { session: session("s1"), leafId: "", entries: 3, change: "created" });
  await until("the list is back", () => ids().length === 1);
  await until("the team is back", () => board.teams().some(({ roster }) => roster.team === "t"));
});

test("what was shown stays until the server that came back has answered", async () => {
  const { crew, board, state, ids } = playedBoard([task("1")]);
  await board.refresh();
  const lists = crew.answers["task/lists"];
  let go = () => {};
  crew.answers["task/lists"] = async (params) => {
    await new Promise<void>((resolve) => {
      go = resolve;
    });
    assert.ok(lists);
    return lists(params);
  };
  state.tasks = [task("1"), task("2")];
  crew.reconnect();
  await until("it is asked", () => crew.asked.at(-1) === "task/lists");
  assert.deepEqual(ids(), ["1"]);
  go();
  await until("what is new is there", () => ids().length === 2);
});

test("a list that cannot be read has a problem, the others are shown", async () => {
  const errors: unknown[] = [];
  const { crew, board } = playedBoard([task("1")], (error) => errors.push(error));
  crew.answers["task/list"] = ({ listId }) => {
    if (listId === "s1") throw new CrewError("storageFailed", "m", { reason: "No such device", errno: "ENXIO", path: "/h" });
    return { items: [], counts: counts(0), revision: 1 };
  };
  await board.refresh();
  assert.match(board.list("s1")?.problem ?? "", /No such device/);
  assert.equal(board.list("board")?.problem, undefined);
  assert.equal(errors.length, 1);
  crew.answers["task/list"] = () => ({ items: [task("1"), task("2")], counts: counts(2), revision: 2 });
  crew.tell("task/didChange", { listId: "s1", revision: 2, changed: [task("2")], removed: [], counts: counts(2) });
  await until("it is read when something changes", () => board.list("s1")?.tasks?.size === 2);
  assert.equal(board.list("s1")?.problem, undefined);
});

test("a board that cannot be read at all says so, and is read when it can be", async () => {
  const errors: unknown[] = [];
  const { crew, board, ids } = playedBoard([task("1")], (error) => errors.push(error));
  const lists = crew.answers["task/lists"];
  crew.answers["task/lists"] = () => {
    throw new CrewError("storageFailed", "m", {});
  };
  await board.refresh();
  assert.deepEqual([board.loaded, board.tried, errors.length], [false, true, 1]);
  crew.answers["task/lists"] = lists as never;
  await board.refresh();
  assert.deepEqual(ids(), ["1"]);
});

test("transcripts, of which nobody tells, are looked at", async () => {
  const { crew, board } = playedBoard([task("1")]);
  await board.refresh();
  let changes = 0;
  board.onDidChange(() => changes++);
  await board.lookAtTranscripts();
  assert.equal(changes, 0);
  crew.answers["transcript/list"] = () => ({ agents: [{ agent: "ada", count: 2 }] });
  await board.lookAtTranscripts();
  assert.equal(changes, 1);
  assert.equal(
    board
      .teams()
      .find(({ list }) => list.listId === "s1")
      ?.transcripts.get("ada"),
    2,
  );
});

test("sessions are the newest first, with what a list does not tell; others' are left out", async () => {
  let listed = 0;
  const crew = new Played({
    "session/list": ({ cwd }) => {
      listed++;
      return {
        sessions: cwd === "/p" ? [{ ...session("old"), updated: "2026-03-01T00:00:00Z" }, session("new")] : [],
        skipped: [],
      } as never;
    },
    "session/entries": () => ({ entries: [{ data: { model: "m-1" } }] }) as never,
    "session/stats": () => ({ byModel: {}, total: { cost: 2 } }) as never,
  });
  const sessions = new Sessions(crew, () => makeScope(["/p"], false), fail);
  await sessions.refresh();
  assert.deepEqual(
    sessions.all().map(({ id }) => id),
    ["new", "old"],
  );
  await until("its model and cost are known", () => sessions.facts.get("new")?.model === "m-1" && sessions.facts.get("new")?.cost === 2);
  crew.tell("session/didChange", { session: session("theirs", "/elsewhere"), leafId: "", entries: 1, change: "created" });
  assert.equal(sessions.get("theirs"), undefined);
  crew.tell("session/didChange", {
    session: { ...session("newest"), updated: "2026-03-05T00:00:00Z" },
    leafId: "",
    entries: 1,
    change: "created",
  });
  assert.equal(sessions.all()[0]?.id, "newest");
  crew.tell("session/didChange", { session: session("new"), leafId: "", entries: 0, change: "deleted" });
  assert.equal(sessions.get("new"), undefined);
  assert.equal(listed, 1);
});

test("a folder that was opened through a link has the projects of both names", () => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "crewlog-scope-")));
  try {
    mkdirSync(join(root, "itself"));
    symlinkSync(join(root, "itself"), join(root, "link"));
    const scope = makeScope([join(root, "link")], false);
    for (const name of ["link", "itself"]) assert.ok(isShown(session("s", join(root, name)), scope), name);
    assert.ok(!isShown(session("s", join(root, "other")), scope));
    assert.ok(isShown(session("s", "/gone"), makeScope(["/gone"], false)), "a folder that is not there any more");
  } finally {
    rmSync(root, { recursive: true });
  }
});

test("all projects are shown where no folder is open, or where that is asked for", () => {
  for (const scope of [makeScope([], false), makeScope(["/p"], true)]) assert.ok(isShown(session("s", "/elsewhere"), scope));
});

test("work that is asked for while it runs runs once more, and one that fails goes on", async () => {
  let runs = 0;
  const errors: unknown[] = [];
  const work = new Coalesced(
    async () => {
      runs++;
      if (runs === 1) throw new Error("first");
    },
    (error) => errors.push(error),
    1,
  );
  await Promise.all([work.request(), work.request(), work.request()]);
  assert.deepEqual([runs, errors.length], [1, 1]);
  await work.request();
  assert.equal(runs, 2);
});
