import assert from "node:assert/strict";
import { test } from "node:test";
import { planNameProblem, planRows } from "../src/model/plans";
import { type Team, teamRows } from "../src/model/team";
import type { RosterMember, Task } from "../src/protocol";

const NOW = Date.parse("2026-03-04T12:00:00Z");

function team(members: Partial<RosterMember>[], tasks: Partial<Task>[] = [], transcripts: [string, number][] = [], listId = "l"): Team {
  const all = tasks.map((task, index) => ({ id: String(index + 1), subject: "", status: "pending", blocks: [], blockedBy: [], ...task }));
  return {
    list: {
      listId,
      session: null,
      counts: { pending: 0, inProgress: 0, completed: 0, total: all.length },
      modified: "",
      tasks: new Map(all.map((task) => [task.id, task])),
    },
    roster: {
      team: members.length > 0 ? `team of ${listId}` : "",
      members: members.map((member) => ({ name: "", agent_type: "", ...member })),
    },
    transcripts: new Map(transcripts),
  };
}

test("members have a type, and what each works on", () => {
  const rows = teamRows(
    [
      team(
        [{ name: "ada", agent_type: "coder" }, { name: "bob", agent_type: "reviewer" }, { name: "cy" }],
        [
          { subject: "held", owner: "ada" },
          { subject: "Write it", activeForm: "Writing it", owner: "ada", status: "in_progress" },
          { subject: "first", owner: "bob" },
          { subject: "second", owner: "bob" },
          { subject: "done", owner: "cy", status: "completed" },
        ],
      ),
    ],
    NOW,
  );
  assert.deepEqual(
    rows.map(({ label, description }) => [label, description]),
    [
      ["ada", "coder · Writing it"],
      ["bob", "reviewer · first +1"],
      ["cy", "idle"],
    ],
  );
});

test("a member whose lease lapsed works on nothing", () => {
  const lapsed = { subject: "x", owner: "ada", status: "in_progress", claim: { generation: 1, lapsed: true } as Task["claim"] };
  assert.equal(teamRows([team([{ name: "ada", agent_type: "coder" }], [lapsed])], NOW)[0]?.description, "coder · idle");
});

test("a click shows the transcript, before there is one too", () => {
  const [row] = teamRows([team([{ name: "ada" }])], NOW);
  assert.deepEqual(row?.run?.args, [{ listId: "l", agent: "ada" }]);
});

test("transcripts of agents that are not in the team are folded below it", () => {
  const rows = teamRows(
    [
      team(
        [{ name: "ada" }],
        [],
        [
          ["ada", 2],
          ["zed", 1],
          ["eve", 3],
        ],
      ),
    ],
    NOW,
  );
  assert.deepEqual(
    rows.map(({ label }) => label),
    ["ada", "Transcripts of others"],
  );
  assert.deepEqual(
    rows[1]?.children?.().map(({ label, description }) => [label, description]),
    [
      ["eve", "3 messages"],
      ["zed", "1 message"],
    ],
  );
});

test("several teams are rows with their members below; lists without one are left out", () => {
  const rows = teamRows([team([{ name: "ada" }], [], [], "a"), team([], [], [], "b"), team([{ name: "bob" }], [], [], "c")], NOW);
  assert.deepEqual(
    rows.map(({ label, expanded }) => [label, expanded]),
    [
      ["team of a", true],
      ["team of c", false],
    ],
  );
  assert.deepEqual(
    rows[1]?.children?.().map(({ label }) => label),
    ["bob"],
  );
});

test("colours are names or #rrggbb; anything else is no colour, and never part of the picture", () => {
  const icon = (color: string) => teamRows([team([{ name: "ada", color }])], NOW)[0]?.icon;
  assert.deepEqual(icon("Blue"), { name: "account", color: "charts.blue" });
  assert.match(JSON.stringify(icon("#c2185b")), /fill=\\"#c2185b\\"/);
  for (const hostile of ["", "red' onload='x", '#fff" onload="x', "url(https://example.com)", "constructor", "#12345"])
    assert.deepEqual(icon(hostile), { name: "account" });
});

test("plans tell their age, and that they are empty", () => {
  const rows = planRows(
    [
      { name: "none", path: "/p/none.md", modified: new Date(NOW).toISOString(), size: 0 },
      { name: "a\u202eb", path: "/p/a.md", modified: new Date(NOW - 3_600_000).toISOString(), size: 2048 },
    ],
    NOW,
  );
  assert.deepEqual(
    rows.map(({ label, description }) => [label, description]),
    [
      ["none", "now · empty"],
      ["a\ufffdb", "1 h"],
    ],
  );
  assert.deepEqual(rows[1]?.target, { plan: "a\u202eb", copy: "a\u202eb" });
});

test("names that cannot be a plan's are refused while they are typed", () => {
  for (const bad of ["", "  ", ".hidden", "a/b", "a\\b", "a\u0000", "ends.", "x".repeat(201), "taken"])
    assert.ok(planNameProblem(bad, ["taken"]), JSON.stringify(bad));
  for (const good of ["calm-writing-river", "Überplan 2", "v1.2"]) assert.equal(planNameProblem(good, ["taken"]), undefined, good);
});
