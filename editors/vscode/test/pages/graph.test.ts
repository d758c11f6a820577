import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { type GraphFrame, openGraph } from "./graphFrame";
import { Server, scratch, startBrowser, until } from "./harness";

const CWD = "/workspace/pages";
const folder = scratch();
let browser: Browser;
let server: Server;
/** Another process, for changes that the page is told of by notification. */
let agent: Server;

before(async () => {
  [browser, server, agent] = await Promise.all([startBrowser(), Server.start(folder.path, CWD), Server.start(folder.path, CWD)]);
});

after(async () => {
  await browser?.close();
  await Promise.all([server?.stop(), agent?.stop()]);
  folder.remove();
});

let made = 0;

/** A list of tasks, each given as its subject and the numbers of those that it waits for. */
async function list(tasks: [string, ...number[]][], name = `list-${++made}`): Promise<string> {
  for (const [subject, ...blockers] of tasks)
    await agent.request("task/create", { listId: name, subject, ...(blockers.length > 0 ? { blockedBy: blockers.map(String) } : {}) });
  return name;
}

/** A parser's rewrite, in every state that a task can have. */
async function rewrite(): Promise<string> {
  const id = await list([
    ["Read how lines are split today"],
    ["Write down the grammar", 1],
    ["Tokenizer that keeps positions, so that every error can say where in the file it is and what stands there", 2],
    ["Parser for expressions", 3],
    ["Parser for statements", 3],
    ["Error messages with a caret under the place", 4, 5],
    ["Measure against the old parser", 4],
    ["Change the callers over", 6, 7],
    ["Remove the old parser", 8],
    ["Update the copyright line"],
    ["Ask about the licence of the test files"],
  ]);
  for (const done of ["1", "2"]) await agent.request("task/update", { listId: id, id: done, status: "completed" });
  await agent.request("task/update", { listId: id, id: "3", activeForm: "Writing the tokenizer" });
  await agent.request("task/claim", { listId: id, id: "3", owner: "mira" });
  await agent.request("task/update", { listId: id, id: "3", status: "in_progress" });
  await agent.request("task/claim", { listId: id, id: "11", owner: "otto", leaseMs: 1, autoRenew: false });
  return id;
}

const box = (frame: GraphFrame, id: string) => frame.page.locator(`.box[data-id="${id}"]`);
const place = (frame: GraphFrame, id: string) => box(frame, id).boundingBox();

async function close(frame: GraphFrame): Promise<void> {
  assert.deepEqual(frame.complaints, []);
  await frame.page.context().close();
  await frame.feed.dispose();
}

test("tasks stand behind what they wait for, in the colour of their state, in each theme", async () => {
  const id = await rewrite();
  for (const theme of ["light", "dark", "hc"] as const) {
    const frame = await openGraph(browser, server, id, { theme, title: "Parser rewrite" });
    const { page } = frame;
    await until("the lapsed lease to show", async () => (await page.locator(".box.state-lapsed").count()) === 1);
    assert.equal(await page.locator("#title").innerText(), "Parser rewrite");
    assert.equal(await page.locator("#facts").innerText(), "11 tasks · 10 dependencies");
    const states = await page.locator(".box").evaluateAll((boxes) => boxes.map((node) => /state-(\w+)/.exec(node.className)?.[1]));
    assert.deepEqual(states, ["completed", "completed", "inProgress", ...Array.from({ length: 6 }, () => "blocked"), "ready", "lapsed"]);
    for (const [blocker, waiting] of [
      ["1", "2"],
      ["3", "4"],
      ["3", "5"],
      ["7", "8"],
      ["8", "9"],
    ] as const) {
      const [left, right] = [await place(frame, blocker), await place(frame, waiting)];
      assert.ok(left && right && left.y + left.height < right.y, `${blocker} stands above ${waiting}`);
    }
    assert.equal(await page.locator(".line").count(), 10);
    assert.equal(await page.locator(".line.settled").count(), 2);
    assert.match(await box(frame, "3").innerText(), /mira\s+Writing the tokenizer/);
    assert.deepEqual(
      (await page.locator("#legend li").allInnerTexts()).map((item) => item.trim()),
      ["1 in progress", "1 open", "6 blocked", "1 lapsed", "2 done"],
    );
    await frame.screenshot(`graph-${theme}`);
    await page.locator("#as-list").click();
    await frame.screenshot(`graph-list-${theme}`);
    await close(frame);
  }
});
