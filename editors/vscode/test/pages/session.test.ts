import assert from "node:assert/strict";
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import type { NewEntry } from "../../src/protocol";
import { ALL_THEMES, Server, scratch, startBrowser, until } from "./harness";
import { call, hostile, modelCall, morning, result, said, text } from "./samples";
import { openSession, type SessionFrame } from "./sessionFrame";

const CWD = "/workspace/pages";
const folder = scratch();
let browser: Browser;
let server: Server;
/** Another process, for changes that the page is told of by notification. */
let agent: Server;

before(async () => {
  [server, agent] = await Promise.all([Server.start(folder.path, CWD), Server.start(folder.path, CWD)]);
  browser = await startBrowser();
});

after(async () => {
  await browser?.close();
  await Promise.all([server?.stop(), agent?.stop()]);
  folder.remove();
});

async function session(entries: NewEntry[], name = "A session"): Promise<string> {
  const made = await agent.request("session/create", { name });
  for (let from = 0; from < entries.length; from += 4000) {
    await agent.request("session/append", { sessionId: made.session.id, entries: entries.slice(from, from + 4000) });
  }
  return made.session.id;
}

/** A session whose entries another program wrote into its file, among them such as the server would refuse. */
async function written(entries: NewEntry[], name: string): Promise<string> {
  const id = await session([], name);
  const { session: made, leafId } = await agent.request("session/open", { sessionId: id });
  let parent_id = leafId;
  const lines = entries.map(({ kind, data }, at) => {
    const line = JSON.stringify({ kind, id: `hostile${at}`, parent_id, timestamp: "2026-03-01T10:00:00Z", data });
    parent_id = `hostile${at}`;
    return `${line}\n`;
  });
  appendFileSync(made.path, lines.join(""));
  return id;
}

async function rows(frame: SessionFrame): Promise<number> {
  return frame.page.locator("#feed > article").count();
}

function quiet(frame: SessionFrame): void {
  assert.deepEqual(frame.complaints, []);
}

test("a session reads as a page, in each theme", async () => {
  const id = await session(morning(), "Parser loses the last line");
  for (const theme of ALL_THEMES) {
    const frame = await openSession(browser, server, id, { theme, height: 1500 });
    const { page } = frame;
    assert.equal(await page.locator("#title").innerText(), "Parser loses the last line");
    assert.match(await page.locator("#status").innerText(), /^17 entries · following$/);
    assert.equal(await page.locator("article", { hasText: "never yields" }).locator("table td").first().innerText(), "a\\nb");
    const calls = page.locator("details.tool > summary");
    assert.deepEqual(
      (await calls.allInnerTexts()).map((line) => line.replace(/\s+/g, " ")),
      [
        "read_file src/parser/lines.py done",
        "bash rg -n 'splitlines|readline' src tests done",
        "bash pytest -q tests/test_lines.py failed",
        "write_file CHANGELOG.md no result yet",
      ],
    );
    assert.equal(await page.locator("text=yield from whole").count(), 0, "results are folded");
    await calls.nth(0).click();
    assert.equal(
      await page
        .locator("details.tool[open] .result")
        .innerText()
        .then((shown) => shown.includes("yield from whole")),
      true,
    );
    await calls.nth(2).click();
    assert.match(await page.locator("details.tool-failed[open] .part").last().innerText(), /error/);
    assert.match(await page.locator(".usage").first().innerText(), /1,240 in · 356 out · cache 91% \(18,400 read, 512 written\) · 2\.3 s/);
    assert.match(
      await page.locator(".cache-break").innerText(),
      /Cache dropped by 17,000 tokens \(92%\): tools changed · a tool was added/,
    );
    assert.match(await page.locator(".usage").last().innerText(), /cost 0\.0123/);
    assert.equal(await page.locator(".picture img").evaluate((image: HTMLImageElement) => image.naturalWidth), 360);
    assert.match(await page.locator(".row-compaction").innerText(), /Conversation compacted, 1 message kept/);
    await frame.screenshot(`session-${theme}`);
    quiet(frame);
    await page.context().close();
  }
});

test("what stands in a session is text: nothing runs, nothing is fetched, nothing can be followed", async () => {
  const id = await written(hostile(), "<img src=x onerror=window.pwned=20>\u202egpj");
  const frame = await openSession(browser, server, id, { height: 2400 });
  const { page } = frame;
  await page.locator("#folds").click();
  await until(
    "all folds to be open",
    async () => (await page.locator("details:not([open])").count()) === 0 && (await page.locator("details[open]").count()) > 3,
  );
  assert.equal(await page.evaluate(() => (window as unknown as { pwned?: number }).pwned), undefined);
  assert.equal(
    await page
      .locator("#feed a, #feed [href], #feed script, #feed iframe, #feed b, #feed style, #feed [onerror], #feed [onload], #feed form")
      .count(),
    0,
  );
  const feed = await page.locator("#feed").innerText();
  for (const shown of [
    "<script>window.pwned = 1</script>",
    "run (command:workbench.action.terminal.new)",
    "[js](javascript:window.pwned=4)",
    "web (https://evil.example/x)",
    "[image: picture https://evil.example/track.png]",
    "$(trash)",
  ]) {
    assert.ok(feed.includes(shown), `not shown as text: ${shown}\n${feed}`);
  }
  // An image is shown when it is one, from data alone.
  assert.deepEqual(
    await page.locator("#feed img").evaluateAll((images) => images.map((image) => image.getAttribute("src")?.slice(0, 5))),
    [],
  );
  for (const told of [
    "image/svg+xml: not shown",
    "https://evil.example/track.gif (not fetched)",
    "cannot be decoded",
    "An image that cannot be shown.",
  ]) {
    assert.ok(feed.includes(told), `not told: ${told}\n${feed}`);
  }
  // Characters that would act on what stands beside them are named instead.
  assert.equal(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069]/.test(
      await page.locator("body").evaluate((body) => body.textContent ?? ""),
    ),
    false,
  );
  const marks = await page.locator(".unseen").allTextContents();
  for (const mark of ["RLO", "PDF", "LRI", "PDI", "ZWSP", "␇", "␛", "LS"]) assert.ok(marks.includes(mark), `${mark} in ${marks}`);
  assert.match(
    await page.locator(".unseen", { hasText: "RLO" }).first().getAttribute("title").then(String),
    /U\+202E right-to-left override/,
  );
  assert.ok((await page.locator("#title").innerText()).startsWith("<img src=x"));
  // What cannot be read says so, and shows what is stored.
  for (const told of [
    "the message has no list of blocks",
    "its data is not a record",
    "this kind of entry is not known here",
    "its call is not in this conversation",
  ]) {
    assert.ok(feed.includes(told), `not told: ${told}\n${feed}`);
  }
  await frame.screenshot("session-hostile");
  quiet(frame);
  await page.context().close();
});

test("a line of 5 MB does not reach the page until it is asked for, and then in part", async () => {
  const id = await session([said("user", text("before")), said("user", text("x".repeat(5_000_000))), said("user", text("behind"))]);
  const frame = await openSession(browser, server, id);
  const { page } = frame;
  await page.getByText("Entry of 5.0 MB").waitFor();
  await frame.screenshot("session-large-entry");
  await page.getByRole("button", { name: "Load it" }).click();
  await page.getByText(/4,960,000 characters more\./).waitFor();
  assert.equal((await page.locator(".plain", { hasText: "xxx" }).textContent())?.length, 40_000);
  await page.getByRole("button", { name: "Open the whole entry" }).click();
  await until("the page to ask for an editor", () => frame.asked.some((message) => message.type === "openWhole"));
  quiet(frame);
  await page.context().close();
});

test("20,000 entries: the end at once, the rest by pages, and never more in the document than near the view", async () => {
  const entries: NewEntry[] = [];
  for (let turn = 0; turn < 5000; turn += 1) {
    entries.push(said("user", text(`Question ${turn}`)));
    entries.push(
      said(
        "assistant",
        text(`Answer **${turn}** about the parser.\n\n- one\n- two`),
        call(`t${turn}`, "bash", { command: `echo ${turn}` }),
      ),
    );
    entries.push(result(`t${turn}`, `output of ${turn}\n`.repeat(1 + (turn % 7))), modelCall());
  }
  const id = await session(entries, "A long one");
  const frame = await openSession(browser, server, id);
  const { page } = frame;
  assert.match(await page.locator("#status").innerText(), /^300 of 20,001 entries · following$/);
  assert.ok(await page.getByText("Answer 4999").isVisible());
  assert.ok((await rows(frame)) < 60);

  // Scrolling up loads what is older, and what is looked at stays where it is.
  await page.locator("#view").hover();
  const looked = page.locator("article", { hasText: "Question 4940" });
  await until("the wheel to get there", async () => {
    await page.mouse.wheel(0, -400);
    return looked.isVisible();
  });
  const view = page.locator("#view");
  // The last turn of the wheel may still be under way.
  let still = { top: Number.NaN, times: 0 };
  await until("the wheel to stand still", async () => {
    const now = await view.evaluate((node) => node.scrollTop);
    still = { top: now, times: now === still.top ? still.times + 1 : 0 };
    return still.times >= 8;
  });
  await page.evaluate(() => {
    const at = document.querySelectorAll("#feed > article");
    (window as unknown as { watched: unknown }).watched = [...at]
      .find((node) => node.getBoundingClientRect().top > 200)
      ?.getAttribute("data-key");
  });
  const top = () =>
    page.evaluate(
      () =>
        document.querySelector(`[data-key="${(window as unknown as { watched: string }).watched}"]`)?.getBoundingClientRect().top ??
        Number.NaN,
    );
  const before = await top();
  await page.locator("#earlier").evaluate((button) => (button as HTMLElement).click());
  await until("older entries", async () => !(await page.locator("#status").innerText()).startsWith("300 "));
  assert.ok(Math.abs((await top()) - before) <= 1, `moved from ${before} to ${await top()}`);

  // Home loads all of it and goes to the first; End back.
  const started = Date.now();
  await page.keyboard.press("Home");
  await page.getByText("Session began").waitFor({ timeout: 120_000 });
  const loading = Date.now() - started;
  assert.match(await page.locator("#status").innerText(), /^20,001 entries/);
  assert.ok((await rows(frame)) < 60);
  assert.equal(await page.locator("article").first().getAttribute("aria-posinset"), "1");

  // Smooth: a frame of scrolling through all of it, beside a frame of the same page with a hundredth of it.
  const long = await frameTime(frame);
  const shortId = await session(entries.slice(0, 200));
  const short = await openSession(browser, server, shortId);
  const brief = await frameTime(short);
  console.log(
    `# 20,001 entries loaded in ${loading} ms; a scrolled frame takes ${long.toFixed(1)} ms of script, with 201 entries ${brief.toFixed(1)} ms`,
  );
  assert.ok(long < brief * 3 + 4, `a frame takes ${long} ms, with few entries ${brief} ms`);

  await page.keyboard.press("End");
  await until("the end", async () => page.getByText("Answer 4999").isVisible());

  // Find looks at all of it, folds included.
  await page.keyboard.press("Control+f");
  await page.keyboard.type("output of 17\n".trim());
  await until("the search to end", async () => /of 1[01]{2} entries|of 111 entries/.test(await page.locator("#finder output").innerText()));
  await page.keyboard.press("Enter");
  await until("a result in view", async () =>
    /output of 17/.test(
      await page
        .locator("details[open] pre", { hasText: "output of 17" })
        .first()
        .innerText()
        .catch(() => ""),
    ),
  );
  await frame.screenshot("session-find");
  quiet(frame);
  await view.page().context().close();
  await short.page.context().close();
});

/** Milliseconds of script and layout that a jump to somewhere else in the page takes, the median of many. */
async function frameTime(frame: SessionFrame): Promise<number> {
  return frame.page.evaluate(async () => {
    const view = document.getElementById("view") as HTMLElement;
    const times: number[] = [];
    for (let step = 0; step < 80; step += 1) {
      const started = performance.now();
      view.scrollTop = (view.scrollHeight * ((step * 37) % 80)) / 80;
      view.dispatchEvent(new Event("scroll"));
      const asked = performance.now() - started;
      // What the page does in the frame it has asked for comes before this; its time stamp is when the frame began.
      const drawn = await new Promise<number>((resolve) =>
        requestAnimationFrame((began) => {
          void view.scrollHeight;
          resolve(performance.now() - began);
        }),
      );
      times.push(asked + drawn);
    }
    return times.sort((a, b) => a - b)[40] ?? 0;
  });
}

test("it follows an agent at work, and says so politely to whoever reads further up", async () => {
  const id = await session(Array.from({ length: 60 }, (_, at) => said("user", text(`line ${at}`))));
  const frame = await openSession(browser, server, id);
  const { page } = frame;
  await agent.request("session/append", {
    sessionId: id,
    entries: [said("assistant", text("I began."), call("w", "bash", { command: "make" }))],
  });
  await page.getByText("I began.").waitFor();
  assert.ok(await page.locator("article", { hasText: "I began." }).isVisible());
  assert.match(await page.locator("details.tool").innerText(), /no result yet/);
  await until("a word to the screen reader", async () => (await page.locator("#live").textContent()) === "1 new entry");
  assert.equal(await page.locator("#live").getAttribute("aria-live"), "polite");
  await agent.request("session/append", { sessionId: id, entries: [result("w", "built")] });
  await until("the result in its call", async () => /done/.test(await page.locator("details.tool").innerText()));

  await page.keyboard.press("Home");
  await page.getByText("Session began").waitFor();
  const first = await page.locator("article").first().boundingBox();
  await agent.request("session/append", {
    sessionId: id,
    entries: [said("assistant", text("More.")), said("assistant", text("Even more."))],
  });
  const latest = page.locator("#latest");
  await until("news below", async () => /2 new entries · Jump to latest/.test(await latest.innerText().catch(() => "")));
  assert.deepEqual(await page.locator("article").first().boundingBox(), first, "what is read stays where it is");
  await frame.screenshot("session-jump");
  await latest.click();
  assert.ok(await page.getByText("Even more.").isVisible());
  assert.equal(await latest.isVisible(), false);
  quiet(frame);
  await page.context().close();
});

test("after a rewind the page follows the new branch, and the one that was left can be looked at", async () => {
  const id = await session([said("user", text("first")), said("assistant", text("wrong turn")), said("user", text("in the wrong"))]);
  const frame = await openSession(browser, server, id);
  const { page } = frame;
  assert.equal(await page.locator("#branching").isVisible(), false);
  await page.locator("article", { hasText: "first" }).hover();
  await page.locator("article", { hasText: "first" }).getByRole("button", { name: "Rewind to here" }).click();
  await until("the page to ask for it", () => frame.asked.length > 0);
  const [asked] = frame.asked;
  assert.equal(asked?.type, "rewind");
  // What the extension's command does then, here another process.
  await agent.request("session/rewind", { sessionId: id, entryId: (asked as { entryId: string }).entryId });
  await agent.request("session/append", { sessionId: id, entries: [said("assistant", text("right turn"))] });
  await page.locator("#feed").getByText("right turn").waitFor();
  assert.equal(await page.locator("#feed").getByText("wrong turn").count(), 0);
  await page.getByText("Went on from the entry above").waitFor();
  await page.getByText("was taken back to an earlier entry").waitFor();
  const select = page.locator("#branches");
  assert.deepEqual(
    (await select.locator("option").allInnerTexts()).map((option) => option.split(" · ").filter((_, at) => at !== 2)),
    [
      ["Present branch", "4 entries", "right turn"],
      ["Branch 2", "4 entries", "in the wrong"],
    ],
  );
  await frame.screenshot("session-branches");
  await select.selectOption({ index: 1 });
  await page.locator("#feed").getByText("wrong turn").waitFor();
  assert.match(await page.locator("#status").innerText(), /another branch/);
  // What is added to the present one does not disturb.
  await agent.request("session/append", { sessionId: id, entries: [said("assistant", text("further on"))] });
  await until("the branches to be told anew", async () => /further on/.test(await select.locator("option").first().innerText()));
  assert.equal(await page.locator("article", { hasText: "further on" }).count(), 0);
  await select.selectOption({ index: 0 });
  await page.locator("article", { hasText: "further on" }).waitFor();
  quiet(frame);
  await page.context().close();
});

test("by keyboard alone, and for a screen reader", async () => {
  const id = await session(morning());
  const frame = await openSession(browser, server, id, { height: 600 });
  const { page } = frame;
  assert.equal(await page.locator("#feed").getAttribute("role"), "feed");
  const label = () => page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? "");
  await page.keyboard.press("Home");
  await until("the first entry to have the focus", async () => (await label()).startsWith("Session began"));
  await page.keyboard.press("j");
  assert.match(await label(), /^Model anthropic \/ claude-sonnet-4-5/);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  assert.match(await label(), /^User, \d\d:\d\d$/);
  await page.keyboard.press("j");
  assert.match(await label(), /^Assistant, \d\d:\d\d, 2 tool calls$/);
  await page.keyboard.press("Enter");
  assert.equal(await page.locator("article:focus details[open]").count(), 2);
  assert.ok(await page.locator("article:focus").getByText("yield from whole").isVisible());
  await page.keyboard.press("Enter");
  assert.equal(await page.locator("article:focus details[open]").count(), 0);
  await page.keyboard.press("c");
  await page.keyboard.press("y");
  await page.keyboard.press("Shift+F");
  const focused = await page.locator("article:focus").getAttribute("data-key");
  await until("three wishes", () => frame.asked.length === 3);
  assert.deepEqual(
    frame.asked,
    ["copyText", "copyId", "fork"].map((type) => ({ type, entryId: focused })),
  );
  await page.keyboard.press("k");
  assert.match(await label(), /^User/);
  await page.keyboard.press("End");
  assert.match(await label(), /^Assistant, .*1 tool call$/);
  // Every button and field has a name, every row too; one row alone takes part in the tab order.
  assert.deepEqual(
    await page.evaluate(() =>
      [...document.querySelectorAll("button, input, select, article, [role=dialog]")]
        .filter((node) => !(node.getAttribute("aria-label") || node.textContent?.trim() || node.closest("label")))
        .map((node) => node.outerHTML),
    ),
    [],
  );
  assert.equal(await page.locator("article[tabindex='0']").count(), 1);
  await page.keyboard.press("?");
  assert.ok(await page.getByRole("dialog", { name: "Keys" }).isVisible());
  await frame.screenshot("session-keys");
  await page.keyboard.press("Escape");
  assert.match(await label(), /^Assistant/, "the focus is back");
  quiet(frame);
  await page.context().close();
});

test("after a reload the same entries are in view, folded as they were", async () => {
  const entries = Array.from({ length: 500 }, (_, at) =>
    said("assistant", text(`line ${at}`), call(`k${at}`, "bash", { command: `echo ${at}` })),
  );
  const id = await session(entries);
  const frame = await openSession(browser, server, id);
  const { page } = frame;
  await page.keyboard.press("Home");
  await page.getByText("Session began").waitFor();
  for (let step = 0; step < 12; step += 1) await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.locator("article:focus details[open]").waitFor();
  const key = await page.locator("article:focus").getAttribute("data-key");
  await page.evaluate((wanted) => {
    const view = document.getElementById("view") as HTMLElement;
    view.scrollTop +=
      (document.querySelector(`[data-key="${wanted}"]`)?.getBoundingClientRect().top ?? 0) - view.getBoundingClientRect().top - 4;
  }, key);
  await until("the state to be kept", async () => ((await frame.state()) as { top?: string } | undefined)?.top === key);
  const state = await frame.state();
  await page.context().close();
  const again = await openSession(browser, server, id, { state });
  await until("the entry to be back", async () => again.page.locator(`[data-key="${key}"] details[open]`).isVisible());
  assert.ok(await again.page.locator(`[data-key="${key}"]`).evaluate((node) => node.getBoundingClientRect().top < 200));
  // What is chosen is kept in that moment: the tab may be left, and the page gone.
  const raw = await again.page.evaluate(() => {
    document.getElementById("view")?.dispatchEvent(new Event("scroll"));
    document.getElementById("raw")?.click();
    return (window as unknown as { hostState(): { raw?: boolean } }).hostState().raw;
  });
  assert.equal(raw, true);
  quiet(again);
  await again.page.context().close();
});

test("a chain that breaks, a torn last line, a session that is gone: each says what it is", async () => {
  const id = await session([
    said("user", text("lost to view")),
    said("user", text("the last that is reached")),
    said("user", text("the end")),
  ]);
  const { path } = (await agent.request("session/open", { sessionId: id })).session;
  const lines = readFileSync(path, "utf8").trimEnd().split("\n");
  lines.splice(2, 1);
  writeFileSync(path, `${lines.join("\n")}\n{"kind":"message","id":"torn`);
  const frame = await openSession(browser, server, id);
  const { page } = frame;
  await page.getByText("cannot be followed further back").waitFor();
  await page.locator("#feed").getByText("the end").waitFor();
  assert.match(await page.locator("#notice").innerText(), /The last line \(line 4, 28 bytes\) was cut off/);
  await frame.screenshot("session-broken");
  quiet(frame);
  await page.context().close();

  const bad = await session([said("user", text("one")), said("user", text("two"))]);
  const file = (await agent.request("session/open", { sessionId: bad })).session.path;
  appendFileSync(file, "no entry at all\n{}\n");
  const corrupt = await openSession(browser, server, bad);
  assert.match(await corrupt.page.locator("#failure").innerText(), /This session cannot be shown[\s\S]*Line 4[\s\S]*crewlog doctor/);
  await corrupt.screenshot("session-corrupt");
  await corrupt.page.getByRole("button", { name: "Try again" }).click();
  assert.match(await corrupt.page.locator("#failure").innerText(), /This session cannot be shown/);
  writeFileSync(file, readFileSync(file, "utf8").split("no entry")[0] ?? "");
  // The page comes by itself where the server has told of the change meanwhile, and the button is gone then.
  await until("the mended session", async () => {
    const again = corrupt.page.getByRole("button", { name: "Try again" });
    if (await again.isVisible()) await again.click({ timeout: 1000 }).catch(() => undefined);
    return corrupt.page.locator("#feed").getByText("two").isVisible();
  });
  quiet(corrupt);
  await corrupt.page.context().close();

  const gone = await session([said("user", text("still to be read"))]);
  const deleted = await openSession(browser, server, gone);
  await deleted.page.getByText("still to be read").waitFor();
  await agent.request("session/delete", { sessionId: gone });
  await deleted.page.getByText("This session was deleted").waitFor();
  assert.ok(await deleted.page.getByText("still to be read").isVisible());
  await deleted.page.getByRole("button", { name: "Restore session" }).waitFor();
  await deleted.screenshot("session-deleted");
  quiet(deleted);
  await deleted.page.context().close();

  const empty = await openSession(browser, server, await session([]));
  await empty.screenshot("session-empty");
  quiet(empty);
  await empty.page.context().close();
});

test("when the server died, what was read stays, and another server goes on where it ended", async () => {
  const id = await session([said("user", text("before the crash"))]);
  const [first, second] = [await Server.start(folder.path, CWD), await Server.start(folder.path, CWD)];
  let current = first;
  const wire = {
    request: ((method, params) => current.request(method, params)) as Server["request"],
    on: first.on.bind(first) as Server["on"],
  };
  const frame = await openSession(browser, wire, id);
  await frame.page.getByText("before the crash").waitFor();
  await first.kill();
  assert.ok(await frame.page.getByText("before the crash").isVisible());
  await agent.request("session/append", { sessionId: id, entries: [said("assistant", text("said meanwhile"))] });
  current = second;
  second.on("session/didChange", (change) => frame.feed.didChange(change));
  frame.feed.reconnected();
  await frame.page.getByText("said meanwhile").waitFor();
  await agent.request("session/append", { sessionId: id, entries: [said("assistant", text("said after"))] });
  await frame.page.getByText("said after").waitFor();
  quiet(frame);
  await frame.page.context().close();
  await second.stop();
});
