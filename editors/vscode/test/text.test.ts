import assert from "node:assert/strict";
import { test } from "node:test";
import { CrewError, explain, fromReply } from "../src/errors";
import { ErrorCodes } from "../src/protocol";
import { count, inert, line, lines } from "../src/text";

test("a label is one line, without characters that act on their neighbours", () => {
  assert.equal(line("  a\r\n\tb  c "), "a b c");
  for (const acting of ["\u202e", "\u2066", "\u200b", "\u001b", "\u0000", "\u0085", "\ufeff", "\u2028x"])
    assert.doesNotMatch(line(`a${acting}b`), /[\u0000-\u001f\u0080-\u009f\u200b\u2028-\u202e\u2066\ufeff]/);
  assert.equal(line("👩\u200d💻"), "👩\u200d💻"); // what joins emoji stays
});

test("a label is cut by characters, not in the middle of one", () => {
  assert.equal(line("😀".repeat(300), 10), `${"😀".repeat(9)}…`);
  assert.equal(line("x".repeat(10), 10), "x".repeat(10));
  assert.equal(line("x".repeat(5_000_000), 10).length, 10);
});

test("text of several lines keeps them", () => {
  assert.equal(lines("a\n\tb\u202e"), "a\n\tb\ufffd");
  assert.equal(lines("x".repeat(2000)).length, 1000);
});

test("nothing is a link or an icon after inert", () => {
  const text = inert("[x](command:y) $(bug) ](z) $$(a)");
  assert.doesNotMatch(text, /\]\(|\$\(/);
  assert.equal(text.replaceAll("\u200b", ""), "[x](command:y) $(bug) ](z) $$(a)");
});

test("counting", () => {
  assert.deepEqual(
    [count(0, "task"), count(1, "task"), count(1234, "task"), count(2, "reply", "replies")],
    ["0 tasks", "1 task", "1,234 tasks", "2 replies"],
  );
});

test("a reply's kind decides, its code where it has none; codes of others are no replies", () => {
  assert.equal(fromReply(-32000, "m", { kind: "taskNotFound", id: "1" })?.kind, "taskNotFound");
  assert.equal(fromReply(ErrorCodes.alreadyClaimed, "m", undefined)?.kind, "alreadyClaimed");
  assert.equal(fromReply(1, "m", { kind: "constructor" }), null);
  assert.equal(fromReply(1, "m", null), null);
});

test("an error says what happened and what to do", () => {
  const said = (kind: string, data: Record<string, unknown>) => explain(new CrewError(kind as never, "raw", data));
  assert.match(said("alreadyClaimed", { id: "1", owner: "ada" }), /held by ada\. Release it first/);
  assert.match(said("blocked", { id: "1", blockedBy: ["2", "3"] }), /waits for #2, #3\. Complete those first/);
  assert.match(said("blocked", { id: "1", blockedBy: ["2"] }), /Complete that first/);
  assert.match(said("dependencyCycle", { path: ["1", "2", "1"] }), /#1 → #2 → #1\. Nothing was changed/);
  assert.match(said("sessionNotFound", { sessionId: "abc" }), /Restore Deleted Session/);
  assert.match(
    said("storageFailed", { reason: "No space left", errno: "ENOSPC", path: "/h" }),
    /No space left \(ENOSPC, \/h\)\. Nothing was changed/,
  );
  assert.match(said("busy", { path: "/h", holder: { pid: 7 } }), /process 7 holds the lock/);
  assert.match(said("busy", { path: "/h", holder: {} }), /another program holds/);
  assert.equal(said("internalError", {}), "raw");
  assert.equal(explain(new Error("plain")), "plain");
  assert.equal(explain("text"), "text");
});
