import assert from "node:assert/strict";
import { test } from "node:test";
import type { Row } from "../src/model/row";
import { compareIds, nextChange, RECENT_MS, stateOf, type TaskFilter, type TaskList, taskRows, taskText } from "../src/model/tasks";
import type { Task } from "../src/protocol";

const NOW = Date.parse("2026-03-04T12:00:00Z");
const at = (seconds: number) => new Date(NOW + seconds * 1000).toISOString();

function task(id: string, fields: Partial<Task> = {}): Task {
  return { id, subject: `task ${id}`, status: "pending", blocks: [], blockedBy: [], ...fields };
}

function list(tasks: Task[], fields: Partial<TaskList> = {}): TaskList {
  const counts = { pending: 0, inProgress: 0, completed: 0, total: tasks.length };
  for (const { status } of tasks) {
    if (status === "pending") counts.pending++;
    if (status === "in_progress") counts.inProgress++;
    if (status === "completed") counts.completed++;
  }
  return { listId: "l", session: null, counts, modified: at(-60), tasks: new Map(tasks.map((one) => [one.id, one])), ...fields };
}

const children = (row: Row | undefined): Row[] => row?.children?.() ?? [];
const find = (rows: Row[], label: string): Row | undefined => rows.find((row) => row.label === label);
/** Groups with their tasks: { Open: ["task 1"] }. */
function groups(tasks: Task[], filter: TaskFilter = {}, now = NOW): Record<string, string[]> {
  const rows = taskRows([list(tasks)], undefined, filter, "me", now);
  return Object.fromEntries(rows.map((row) => [row.label, children(row).map(({ label }) => label)]));
}
function only(one: Task, others: Task[] = [], now = NOW): Row {
  const rows = taskRows([list([one, ...others])], undefined, {}, "me", now).flatMap(children);
  const row = rows.find(({ target }) => target?.task?.id === one.id);
  assert.ok(row);
  return row;
}

test("tasks stand by status, ready ones before those that wait, by number", () => {
  const tasks = [
    task("10"),
    task("9", { blockedBy: ["10"] }),
    task("2"),
    task("3", { status: "in_progress", owner: "ada", activeForm: "Doing three" }),
    task("4", { status: "completed", completedAt: at(-3600) }),
    task("5", { status: "someday" }),
  ];
  assert.deepEqual(groups(tasks), {
    "In progress": ["Doing three"],
    Open: ["task 2", "task 10", "task 9"],
    "Of unknown status": ["task 5"],
    Completed: ["task 4"],
  });
});

test("completed tasks are folded, the others are not", () => {
  const rows = taskRows([list([task("1"), task("2", { status: "completed" })])], undefined, {}, "me", NOW);
  assert.equal(find(rows, "Open")?.expanded, true);
  assert.equal(find(rows, "Completed")?.expanded, false);
});

test("what was completed stands on top for 30 s, the newest first, and it is known when that ends", () => {
  const tasks = [
    task("1"),
    task("2", { status: "completed", completedAt: at(-20) }),
    task("3", { status: "completed", completedAt: at(-5) }),
  ];
  assert.deepEqual(Object.entries(groups(tasks))[0], ["Just completed", ["task 3", "task 2"]]);
  assert.equal(nextChange([list(tasks)], NOW), NOW - 20_000 + RECENT_MS);
  assert.deepEqual(Object.keys(groups(tasks, {}, NOW + RECENT_MS)), ["Open", "Completed"]);
});

test("a lease that has lapsed gives the task back, with a mark, and it is known when it lapses", () => {
  const held = task("1", { status: "in_progress", owner: "ada", claim: { generation: 1, expiresAt: at(10) } as Task["claim"] });
  assert.equal(nextChange([list([held])], NOW), NOW + 10_000);
  assert.equal(stateOf(held, new Map(), NOW), "inProgress");
  const later = NOW + 11_000;
  assert.equal(stateOf(held, new Map(), later), "lapsed");
  const row = only(held, [], later);
  assert.match(row.description ?? "", /lease lapsed · ada/);
  assert.equal(row.icon && "name" in row.icon && row.icon.name, "warning");
  assert.ok(row.context?.includes("claimable"));
  assert.ok(!row.context?.includes("held"));
});

test("a lease without an end never lapses", () => {
  const held = task("1", { status: "in_progress", owner: "ada", claim: { generation: 1 } as Task["claim"] });
  assert.equal(nextChange([list([held])], NOW), Number.POSITIVE_INFINITY);
  assert.equal(stateOf(held, new Map(), NOW + 1e12), "inProgress");
});

test("open blockers are children, completed and vanished ones are not", () => {
  const row = only(task("1", { blockedBy: ["2", "3", "gone"] }), [
    task("2", { blockedBy: ["4"] }),
    task("3", { status: "completed" }),
    task("4"),
  ]);
  assert.equal(row.description, "#1 · waits for #2");
  assert.deepEqual(
    children(row).map(({ label }) => label),
    ["task 2"],
  );
  assert.deepEqual(
    children(children(row)[0]).map(({ label }) => label),
    ["task 4"],
  );
  assert.equal(children(row)[0]?.target?.task?.waiting, "1");
  assert.ok(children(row)[0]?.context?.includes("blocker"));
});

test("a circle of blockers in damaged files ends", () => {
  let row: Row | undefined = only(task("1", { blockedBy: ["2"] }), [task("2", { blockedBy: ["1"] })]);
  let depth = 0;
  while (row !== undefined && depth < 100) {
    row = children(row)[0];
    depth++;
  }
  assert.ok(depth < 10, `it goes ${depth} deep`);
});

test("each row has a key of its own, the same task below two others too", () => {
  const rows = taskRows([list([task("1"), task("2", { blockedBy: ["1"] }), task("3", { blockedBy: ["1"] })])], undefined, {}, "me", NOW);
  const keys = rows.flatMap(children).flatMap((row) => [row.key, ...children(row).map(({ key }) => key)]);
  assert.equal(new Set(keys).size, keys.length);
  assert.equal(keys.length, 5);
});

test("what can be done with a task is said to the menus", () => {
  const words = (one: Task, others: Task[] = []) => only(one, others).context?.filter((word) => !["task", "id"].includes(word));
  assert.deepEqual(words(task("1")), ["completable", "claimable"]);
  assert.deepEqual(words(task("1", { blockedBy: ["2"] }), [task("2")]), ["completable"]);
  assert.deepEqual(words(task("1", { owner: "ada" })), ["completable", "held"]);
  assert.deepEqual(words(task("1", { owner: "me" })), ["completable", "held", "mine", "startable"]);
  assert.deepEqual(words(task("1", { owner: "me", status: "in_progress" })), ["completable", "held", "mine"]);
  assert.deepEqual(words(task("1", { status: "completed" })), ["completed"]);
});

test("filters by state and owner hold together", () => {
  const tasks = [
    task("1"),
    task("2", { owner: "ada" }),
    task("3", { owner: "ada", status: "in_progress" }),
    task("4", { owner: "bob", status: "in_progress" }),
    task("5", { owner: "ada", status: "completed" }),
    task("6", { owner: "ada", claim: { generation: 1, expiresAt: at(-1) } as Task["claim"] }),
  ];
  assert.deepEqual(groups(tasks, { states: ["inProgress"] }), { "In progress": ["task 3", "task 4"] });
  assert.deepEqual(groups(tasks, { owners: ["ada"] }), { "In progress": ["task 3"], Open: ["task 2"], Completed: ["task 5"] });
  assert.deepEqual(groups(tasks, { owners: [null] }), { Open: ["task 1", "task 6"] });
  assert.deepEqual(groups(tasks, { owners: ["ada"], states: ["inProgress"] }), { "In progress": ["task 3"] });
  assert.deepEqual(groups(tasks, { states: ["unknown"] }), {});
});

test("several lists are rows, the active one open; lists without tasks are left out", () => {
  const session = { id: "s1", name: "fix it", path: "", cwd: "", created: "", updated: "", messageCount: 0, firstMessage: "" };
  const lists = [list([task("1")], { listId: "a", session }), list([task("1")], { listId: "b" }), list([], { listId: "c" })];
  const rows = taskRows(lists, "b", {}, "me", NOW);
  assert.deepEqual(
    rows.map(({ label, expanded }) => [label, expanded]),
    [
      ["fix it", false],
      ["b", true],
    ],
  );
  assert.equal(rows[0]?.target?.sessionId, "s1");
  assert.deepEqual(children(rows[1]).flatMap(children)[0]?.target?.task, { listId: "b", id: "1" });
});

test("a list that cannot be read says why", () => {
  const rows = taskRows([list([task("1")], { problem: "The disk is gone." })], undefined, {}, "me", NOW);
  assert.deepEqual(
    rows.map(({ label }) => label),
    ["The disk is gone."],
  );
});

test("subjects are one line of text", () => {
  const row = only(task("1", { subject: "a\nb\u202ec\u001b[1m" }));
  assert.equal(row.label, "a b\ufffdc\ufffd[1m");
  assert.equal(only(task("1", { subject: "" })).label, "(no subject)");
});

test("ids are ordered as numbers, before words", () => {
  assert.deepEqual(["b", "10", "9", "a", "1"].sort(compareIds), ["1", "9", "10", "a", "b"]);
});

test("a task as text tells all that is known of it", () => {
  const one = task("1", {
    blockedBy: ["2", "9"],
    blocks: ["3"],
    owner: "ada",
    description: "line\nline",
    metadata: { k: [1] },
    activeForm: "Doing",
  });
  const all = list([one, task("2", { status: "completed" }), task("3")]);
  const text = taskText(one, all.tasks ?? new Map(), all, NOW);
  for (const part of [
    "#1 task 1",
    "Owner       ada",
    "#2 task 2 (completed)",
    "#9 (not there any more)",
    "Blocks      #3",
    "line\nline",
    '"k"',
  ])
    assert.ok(text.includes(part), part);
});
