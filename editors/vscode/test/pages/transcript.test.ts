import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { Server, scratch, startBrowser, until } from "./harness";
import { call, morning, text } from "./samples";
import { openTranscript } from "./sessionFrame";

const folder = scratch();
let browser: Browser;
let server: Server;
let agent: Server;

before(async () => {
  [server, agent] = await Promise.all([Server.start(folder.path, "/workspace/pages"), Server.start(folder.path, "/workspace/pages")]);
  browser = await startBrowser();
});

after(async () => {
  await browser?.close();
  await Promise.all([server?.stop(), agent?.stop()]);
  folder.remove();
});

/** The messages of the sample session, as a transcript holds them. */
const messages = morning().flatMap((entry) => (entry.kind === "message" ? [entry.data as never] : []));

test("a transcript reads as a session does, without what only a session can do", async () => {
  await agent.request("transcript/append", { listId: "crew", agent: "mira", messages });
  for (const theme of ["light", "dark", "hc"] as const) {
    const frame = await openTranscript(browser, server, "crew", "mira", { theme });
    const { page } = frame;
    assert.equal(await page.locator("#title").innerText(), "Transcript of mira");
    assert.equal(await page.locator("#facts").innerText(), "Task list crew");
    await page.locator("#feed").getByText("All four tests pass now.").waitFor();
    await page.locator("article").last().hover();
    assert.equal(await page.getByRole("button", { name: "Copy text" }).last().isVisible(), true);
    for (const name of ["Fork from here", "Rewind to here", "Copy entry id"])
      assert.equal(await page.getByRole("button", { name }).count(), 0, name);
    for (const key of ["Home", "F", "R", "y", "c"]) await page.keyboard.press(key);
    await until("the copy to be asked for", () => frame.asked.length > 0);
    assert.deepEqual(
      frame.asked.map(({ type }) => type),
      ["copyText"],
    );
    await frame.screenshot(`transcript-${theme}`);
    assert.deepEqual(frame.complaints, []);
    await page.context().close();
  }
});

test("it pages through 3,000 messages, follows what is added, and comes back after a reload", async () => {
  const said = (words: string, ...more: object[]) => ({ role: "assistant", content: [text(words), ...more] }) as never;
  await agent.request("transcript/append", {
    listId: "crew",
    agent: "otto",
    messages: Array.from({ length: 3000 }, (_, at) => said(`line ${at}`)),
  });
  const frame = await openTranscript(browser, server, "crew", "otto");
  const { page } = frame;
  const feed = page.locator("#feed");
  assert.equal(await page.locator("#status").innerText(), "200 of 3,000 entries · following");
  await agent.request("transcript/append", {
    listId: "crew",
    agent: "otto",
    messages: [said("the newest", call("w", "bash", { command: "make" }))],
  });
  frame.feed.look();
  await feed.getByText("the newest").waitFor();
  assert.equal(await page.locator("#status").innerText(), "201 of 3,001 entries · following");
  await page.keyboard.press("Home");
  await feed.getByText("line 0", { exact: true }).waitFor();
  assert.match(await page.locator("#status").innerText(), /^3,001 entries/);
  await until("the state to be kept", async () => ((await frame.state()) as { top?: string } | undefined)?.top === "0");
  const state = await frame.state();
  assert.deepEqual((state as { transcript?: unknown }).transcript, { listId: "crew", agent: "otto" });
  assert.deepEqual(frame.complaints, []);
  await page.context().close();
  const again = await openTranscript(browser, server, "crew", "otto", { state });
  await again.page.locator("#feed").getByText("line 0", { exact: true }).waitFor();
  assert.deepEqual(again.complaints, []);
  await again.page.context().close();
});

test("a member without a transcript has one as soon as it speaks", async () => {
  const frame = await openTranscript(browser, server, "crew", "newcomer");
  const { page } = frame;
  await page.getByText("There is no transcript yet.").waitFor();
  await frame.screenshot("transcript-empty");
  await agent.request("transcript/append", { listId: "crew", agent: "newcomer", messages: messages.slice(0, 1) });
  frame.feed.look();
  await page.locator("#feed").getByText("The parser drops the last line").waitFor();
  assert.deepEqual(frame.complaints, []);
  await page.context().close();
});
