import assert from "node:assert/strict";
import { test } from "node:test";
import { costText, hitItem, sessionRows, sessionTitle } from "../src/model/sessions";
import { age, dayName, untilMidnight } from "../src/model/time";
import type { SessionInfo } from "../src/protocol";

const NOW = new Date(2026, 2, 4, 12, 0, 0).getTime();
const before = (days: number, hours = 0) => new Date(2026, 2, 4 - days, 12 - hours).toISOString();

function session(id: string, fields: Partial<SessionInfo> = {}): SessionInfo {
  const updated = before(0);
  return {
    id,
    name: "",
    path: `/h/projects/-p/${id}.jsonl`,
    cwd: "/p",
    created: updated,
    updated,
    messageCount: 3,
    firstMessage: "",
    ...fields,
  };
}

const rows = (sessions: SessionInfo[], more = false, project = false) => sessionRows(sessions, new Map(), [], more, project, NOW);

test("sessions stand by day, the newest day first, the newer days open", () => {
  const shown = rows([
    session("a"),
    session("b", { updated: before(0, 3) }),
    session("c", { updated: before(1) }),
    session("d", { updated: before(9) }),
    session("e", { updated: before(400) }),
  ]);
  assert.deepEqual(
    shown.map(({ label, description, expanded }) => [label, description, expanded]),
    [
      ["Today", "2", true],
      ["Yesterday", "1", true],
      ["Monday 23 February", "1", true],
      ["Tuesday 28 January 2025", "1", false],
    ],
  );
  assert.deepEqual(
    shown[0]?.children?.().map(({ target }) => target?.sessionId),
    ["a", "b"],
  );
});

test("a session is called by its name, else by its first message, else by its id", () => {
  assert.equal(sessionTitle(session("a", { name: "named", firstMessage: "said" })), "named");
  assert.equal(sessionTitle(session("a", { firstMessage: "said\nmore" })), "said more");
  assert.equal(sessionTitle(session("a")), "Session a");
});

test("age, messages, cost and model are told, and the project where there are several", () => {
  const facts = new Map([["a", { model: "m-1", cost: 1.5 }]]);
  const told = (project: boolean) =>
    sessionRows(
      [session("a", { updated: before(0, 2), messageCount: 1234, cwd: "/x/lib" })],
      facts,
      [],
      false,
      project,
      NOW,
    )[0]?.children?.()[0]?.description;
  assert.equal(told(false), "2 h · 1,234 msg · $1.50 · m-1");
  assert.equal(told(true), "lib · 2 h · 1,234 msg · $1.50 · m-1");
});

test("older sessions and files that cannot be shown have rows of their own", () => {
  const shown = sessionRows([session("a")], new Map(), [{ path: "/h/b.jsonl", reason: "line 1 is no header" }], true, false, NOW);
  assert.equal(shown[1]?.run?.command, "crewlog.sessions.more");
  assert.equal(shown[2]?.label, "1 file that cannot be shown");
  assert.equal(shown[2]?.children?.()[0]?.description, "line 1 is no header");
});

test("small costs keep two digits that say something", () => {
  assert.deepEqual([0.0123, 0.5, 12].map(costText), ["$0.012", "$0.50", "$12.00"]);
});

test("hits are inert: neither links nor icons", () => {
  const hit = {
    session: session("a", { name: "$(bug) [x](command:y)" }),
    entryId: "e",
    kind: "tool_result",
    timestamp: before(0, 1),
    snippet: "see «[z](command:q)»",
    score: 1,
  };
  const item = hitItem(hit, NOW);
  assert.equal(item.description, "tool result · 1 h");
  for (const text of [item.label, item.detail]) assert.doesNotMatch(text, /\]\(|\$\(/);
});

test("ages", () => {
  const minute = 60_000;
  const ages = [
    0,
    59_999,
    minute,
    59 * minute,
    60 * minute,
    24 * 60 * minute,
    8 * 24 * 60 * minute,
    31 * 24 * 60 * minute,
    800 * 24 * 60 * minute,
  ];
  assert.deepEqual(
    ages.map((ms) => age(new Date(NOW - ms).toISOString(), NOW)),
    ["now", "now", "1 min", "59 min", "1 h", "1 d", "1 wk", "1 mo", "2 yr"],
  );
  assert.equal(age("no time", NOW), "");
  assert.equal(age(new Date(NOW + minute).toISOString(), NOW), "now"); // clocks of two machines may differ
  assert.equal(dayName("no time", NOW), "Without a date");
  assert.equal(untilMidnight(NOW), 12 * 60 * minute);
});
