import assert from "node:assert/strict";
import { test } from "node:test";
import { SessionFeed } from "../src/session/feed";
import type { ToPage } from "../src/session/messages";

const session = { id: "s", name: "", path: "", cwd: "/w", created: "", updated: "", messageCount: 0, firstMessage: "" };
const replies: Record<string, unknown> = {
  subscribe: { subscriptionId: "1" },
  "session/open": { session, leafId: "a", recovered: null },
  "session/branches": { branches: [] },
  "session/entries": { entries: [], leafId: "a", hasMore: false, total: 0 },
};

test("what changes before the page has asked is no reason to read: it is read with the rest, once", async () => {
  const asked: string[] = [];
  const posted: ToPage[] = [];
  const wire = { request: async (method: string) => asked.push(method) && replies[method] };
  const feed = new SessionFeed(wire as unknown as ConstructorParameters<typeof SessionFeed>[0], "s", (message) => posted.push(message));
  feed.didChange({ session, change: "appended", leafId: "a" } as unknown as Parameters<typeof feed.didChange>[0]);
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepEqual(asked, []);
  await feed.handle({ type: "ready", viewing: null, scrollTo: null } as Parameters<typeof feed.handle>[0]);
  assert.deepEqual(
    posted.map(({ type }) => type),
    ["reset"],
  );
  assert.equal(asked.filter((method) => method === "session/entries").length, 1);
});
