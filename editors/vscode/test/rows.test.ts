import assert from "node:assert/strict";
import { test } from "node:test";
import { appendRows, buildRows } from "../src/session/rows";
import type { PageEntry } from "../src/session/shrink";

const state = { reachesStart: true };
let seed = 3;
function random(below: number): number {
  seed = (seed * 16_807) % 2_147_483_647;
  return seed % below;
}

/** A conversation with calls, late results, results without a call, model calls and several days. */
function conversation(length: number): PageEntry[] {
  const open: string[] = [];
  return Array.from({ length }, (_, at): PageEntry => {
    const base = { id: `e${at}`, timestamp: new Date(Date.UTC(2026, 2, 1) + at * 1_700_000).toISOString() };
    const message = (data: Record<string, unknown>): PageEntry => ({ ...base, kind: "message", data: data as never });
    const text = [{ type: "text", text: `words ${at}` }];
    switch (random(8)) {
      case 0:
      case 1:
        return message({ role: "user", content: text });
      case 2: {
        const id = `c${at}`;
        open.push(id);
        return message({ role: "assistant", content: [...text, { type: "toolCall", tool_call: { id, name: "bash", args: {} } }] });
      }
      case 3:
      case 4:
      case 5: {
        // Mostly of the last call, now and then of one long ago, or of none.
        if (open.length === 0 && random(300) > 0) return message({ role: "user", content: text });
        const [id = "none"] = open.splice(random(400) === 0 ? random(open.length + 1) : open.length - 1, 1);
        return message({ role: "tool", content: text, metadata: { tool_call_id: id } });
      }
      case 6:
        return { ...base, kind: "llm_call", data: { provider: "p", model: "m", input_tokens: at, output_tokens: 1, latency_ms: 5 } };
      default:
        return random(6) === 0
          ? { ...base, kind: "compaction", data: { summary: "so far" } }
          : message({ role: "assistant", content: text });
    }
  });
}

test("rows that entries are added to are those that all of them would have made at once", () => {
  let quick = 0;
  for (let round = 0; round < 6; round += 1) {
    const entries = conversation(900);
    let end = 300;
    let rows = buildRows(entries.slice(0, end), state);
    while (end < entries.length) {
      const added = Math.min(1 + random(random(10) === 0 ? 300 : 6), entries.length - end);
      end += added;
      const before = rows;
      rows = appendRows(before, entries.slice(0, end), added, state);
      if (rows[0] === before[0]) quick += 1;
      if (random(8) === 0 || end === entries.length) assert.deepEqual(rows, buildRows(entries.slice(0, end), state));
    }
  }
  assert.ok(quick > 50, `what was there before was left alone ${quick} times`);
});
