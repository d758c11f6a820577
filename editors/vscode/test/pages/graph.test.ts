import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { type GraphFrame, openGraph } from "./graphFrame";
import { ALL_THEMES, Server, scratch, startBrowser, until } from "./harness";

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

const scale = (frame: GraphFrame) => frame.page.locator("#zoom").innerText();
const focused = (frame: GraphFrame) => frame.page.evaluate(() => (document.activeElement as HTMLElement | null)?.dataset["id"]);

async function close(frame: GraphFrame): Promise<void> {
  assert.deepEqual(frame.complaints, []);
  await frame.page.context().close();
  await frame.feed.dispose();
}

test("tasks stand behind what they wait for, in the colour of their state, in each theme", async () => {
  const id = await rewrite();
  for (const theme of ALL_THEMES) {
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

test("a click opens the task, and so does Enter; the arrow keys follow the arrows", async () => {
  const frame = await openGraph(browser, server, await rewrite());
  const { page } = frame;
  await box(frame, "8").click();
  await until("the click to arrive", () => frame.opened.length === 1);
  await page.keyboard.press("ArrowDown");
  assert.equal(await focused(frame), "9");
  await page.keyboard.press("ArrowDown");
  assert.equal(await focused(frame), "9");
  assert.equal(await page.locator("#live").textContent(), "Nothing waits for this task");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("ArrowUp");
  const above = await focused(frame);
  assert.ok(above === "6" || above === "7", above);
  await page.keyboard.press(above === "6" ? "ArrowRight" : "ArrowLeft");
  const beside = await focused(frame);
  assert.equal([above, beside].sort().join(), "6,7");
  // Where the way up divides, the way down leads back to where one came from.
  await page.keyboard.press("ArrowUp");
  const higher = await focused(frame);
  await page.keyboard.press("ArrowDown");
  assert.equal(await focused(frame), beside);
  await page.keyboard.press("ArrowUp");
  assert.equal(await focused(frame), higher);
  await page.keyboard.press("Home");
  assert.equal(await focused(frame), "1");
  await page.keyboard.press("End");
  assert.equal(await focused(frame), "11");
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Space");
  await until("three tasks to be asked for", () => frame.opened.length === 3);
  assert.deepEqual(frame.opened, ["8", "2", "3"]);
  assert.equal(await page.locator(".box[tabindex='0']").count(), 1, "one stop for the Tab key");
  await close(frame);
});

test("a screen reader is told what the picture shows, and has a table of it", async () => {
  const frame = await openGraph(browser, server, await rewrite());
  const { page } = frame;
  await until("the lapsed lease to show", async () => (await page.locator(".box.state-lapsed").count()) === 1);
  const labels = await page.locator(".box").evaluateAll((boxes) => boxes.map((node) => node.getAttribute("aria-label")));
  assert.equal(labels[1], "Task 2: Write down the grammar, done, came after #1, blocks #3");
  assert.equal(labels[2], "Task 3: Writing the tokenizer, in progress, owner mira, came after #2, blocks #4, #5");
  assert.equal(labels[5], "Task 6: Error messages with a caret under the place, blocked, waits for #4, #5, blocks #8");
  assert.equal(labels[10], "Task 11: Ask about the licence of the test files, lapsed, owner otto");
  assert.equal(await page.locator("#graph").getAttribute("role"), "application");
  assert.match(await page.locator("#keys").innerText(), /Arrow keys/);

  await box(frame, "3").focus();
  await page.keyboard.press("l");
  assert.equal(await focused(frame), "3", "the focus stays with the task");
  const row = page.locator("tr", { has: page.locator("[data-id='6']") });
  assert.deepEqual(
    (await row.locator("th, td").allInnerTexts()).map((cell) => cell.replace(/\s+/g, " ").trim()),
    ["#6 Error messages with a caret under the place", "blocked", "", "#4, #5", "#8"],
  );
  await page.getByRole("button", { name: "Update the copyright line" }).click();
  await until("the task to be asked for", () => frame.opened.includes("10"));
  await page.keyboard.press("l");
  assert.equal(await page.locator("#view").isVisible(), true);
  assert.deepEqual(
    await page.evaluate(() =>
      [...document.querySelectorAll("button")].filter((node) => !(node.getAttribute("aria-label") || node.textContent?.trim())),
    ),
    [],
  );
  await close(frame);
});

test("what others change shows at once, and what is looked at stays where it is", async () => {
  const id = await rewrite();
  const frame = await openGraph(browser, server, id);
  const { page } = frame;
  await page.locator("#zoom-in").click();
  await page.locator("#zoom-in").click();
  await box(frame, "6").focus();
  const [zoom, before] = [await scale(frame), await place(frame, "6")];

  await agent.request("task/update", { listId: id, id: "3", status: "completed" });
  await until("the state to change", async () => /state-completed/.test((await box(frame, "3").getAttribute("class")) ?? ""));
  await until("what waited to be open", async () => /state-ready/.test((await box(frame, "4").getAttribute("class")) ?? ""));
  assert.deepEqual(await place(frame, "6"), before);
  await until("a word to the screen reader", async () => /Task 3 done/.test((await page.locator("#live").textContent()) ?? ""));

  // Twenty more, in a chain of their own and before what is looked at: everything is laid out anew about it.
  for (let more = 0; more < 20; more += 1)
    await agent.request("task/create", { listId: id, subject: `More ${more}`, blocks: more % 2 === 0 ? ["6"] : [String(11 + more)] });
  await until("all of them", async () => (await page.locator(".box").count()) === 31);
  await until("the layout to be done", async () => (await page.locator("#graph").getAttribute("aria-busy")) === "false");
  const now = await place(frame, "6");
  assert.ok(now && before && Math.abs(now.x - before.x) <= 1 && Math.abs(now.y - before.y) <= 1, JSON.stringify({ before, now }));
  assert.equal(await scale(frame), zoom);
  assert.equal(await focused(frame), "6");

  // At the very edge as well: one that nothing hangs on stands elsewhere once it hangs on something.
  await box(frame, "10").focus();
  const edge = await place(frame, "10");
  await agent.request("task/update", { listId: id, id: "10", addBlocks: ["1"] });
  await until("the new line", async () => (await page.locator(".line").count()) === 31);
  const moved = await place(frame, "10");
  assert.ok(moved && edge && Math.abs(moved.x - edge.x) <= 1 && Math.abs(moved.y - edge.y) <= 1, JSON.stringify({ edge, moved }));
  await frame.screenshot("graph-held");

  await box(frame, "6").focus();
  await agent.request("task/update", { listId: id, id: "6", status: "deleted" });
  await until("the deleted one to be gone", async () => (await box(frame, "6").count()) === 0);
  assert.notEqual(await focused(frame), undefined, "the focus goes to another task, not to nowhere");
  await close(frame);
});

test("the wheel and dragging move it, the wheel with Ctrl zooms about the pointer, Fit shows all", async () => {
  const frame = await openGraph(browser, server, await rewrite(), { width: 700 });
  const { page } = frame;
  const view = page.locator("#view");
  const target = await place(frame, "5");
  assert.ok(target);
  const [x, y] = [target.x + 10, target.y + 10];
  await page.mouse.move(x, y);
  await page.keyboard.down("Control");
  const started = await scale(frame);
  for (let turn = 0; turn < 4; turn += 1) await page.mouse.wheel(0, -120);
  await page.keyboard.up("Control");
  await until("the zoom", async () => Number.parseInt(await scale(frame), 10) > Number.parseInt(started, 10) * 2);
  const near = await place(frame, "5");
  assert.ok(near && near.x < x && near.x + near.width > x && near.y < y && near.y + near.height > y, "the pointer is where it was");

  const scrolled = () => view.evaluate((node) => [node.scrollLeft, node.scrollTop] as const);
  const [left, top] = await scrolled();
  // From a place where no box is.
  const free = await view.evaluate((node) => {
    const frame = node.getBoundingClientRect();
    for (let y = frame.top + 4; y < frame.bottom - 120; y += 8) {
      for (let x = frame.left + 4; x < frame.right - 120; x += 8) {
        if (!document.elementFromPoint(x, y)?.closest(".box")) return [x, y] as const;
      }
    }
    return undefined;
  });
  assert.ok(free);
  await page.mouse.move(...free);
  await page.mouse.down();
  await page.mouse.move(free[0] + 60, free[1] + 40, { steps: 4 });
  await page.mouse.up();
  const [dragged, down] = await scrolled();
  assert.ok(Math.abs(left - dragged - 60) <= 1 && Math.abs(top - down - 40) <= 1, `${left - dragged}, ${top - down}`);
  await page.mouse.wheel(0, 50);
  await until("the wheel", async () => (await scrolled())[1] === down + 50);
  assert.deepEqual(frame.opened, []);

  await page.locator("#fit").click();
  const frameBox = await view.boundingBox();
  for (const shown of await page.locator(".box").all()) {
    const at = await shown.boundingBox();
    assert.ok(at && frameBox && at.x >= frameBox.x && at.x + at.width <= frameBox.x + frameBox.width && at.y >= frameBox.y);
    assert.ok(at.y + at.height <= frameBox.y + frameBox.height);
  }
  await page.locator("#turn").click();
  await until("it to go to the right", async () => {
    const [first, second] = [await place(frame, "1"), await place(frame, "2")];
    return first !== null && second !== null && first.x + first.width < second.x;
  });
  await page.locator("#fit").click();
  await frame.screenshot("graph-right");
  await close(frame);
});

test("circles, tasks that wait for themselves or for what is not there, and hostile words break nothing", async () => {
  const id = "damaged";
  const home = join(folder.path, "tasks", id);
  mkdirSync(home, { recursive: true });
  const write = (number: number, subject: string, blockedBy: string[], more: Record<string, unknown> = {}) =>
    writeFileSync(
      join(home, `${number}.json`),
      JSON.stringify({ id: String(number), subject, status: "pending", blocks: [], blockedBy, ...more }),
    );
  write(1, "<script>window.pwned = 1</script><img src=x onerror='window.pwned = 2'>", ["3"]);
  write(2, "[run](command:workbench.action.terminal.new) $(trash) https://evil.example/x", ["1"]);
  write(3, "file \u202egnp.exe\u202c and \u2066isolated\u2069, zero\u200bwidth, bell\u0007", ["2"]);
  write(4, "waits for itself", ["4"]);
  write(5, "waits for what is not there", ["404", "405"]);
  write(6, "waits for what is not there, too", ["404"], {
    owner: "<b>owner</b>\u202e",
    activeForm: "</button><script>window.pwned = 3</script>",
  });
  write(7, `${"very long ".repeat(20_000)}`, [], { description: "x".repeat(100_000) });
  write(8, "", [], { status: "no such status" });
  write(9, "العربية ثم English", ["5"]);
  writeFileSync(join(home, "10.json"), "no JSON at all");
  const frame = await openGraph(browser, server, id, { title: "<img src=x onerror=window.pwned=4>\u202egpj" });
  const { page } = frame;
  assert.equal(await page.locator(".box").count(), 11, "nine tasks and two that are not there");
  assert.match(
    await page.locator("#circles").innerText(),
    /wait for each other, so that none of them can start: #\d → #\d → #\d → #\d; #4 → #4/,
  );
  assert.equal(await page.locator(".line.cyclic").count(), 4);
  assert.match(await page.locator("#notice").innerText(), /1 file of this list cannot be read/);
  assert.equal(await page.evaluate(() => (window as unknown as { pwned?: number }).pwned), undefined);
  assert.equal(await page.locator("#graph a, #graph script, #graph img, #graph b, #list script, #title img").count(), 0);
  assert.ok((await box(frame, "1").innerText()).includes("<script>window.pwned = 1</script>"));
  assert.match(await box(frame, "8").innerText(), /\(no subject\)/);
  const told = await page.evaluate(() =>
    [...document.querySelectorAll("*")].flatMap((node) => [node.getAttribute("title"), node.getAttribute("aria-label")]).join("\n"),
  );
  const acting = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069]/;
  assert.equal(acting.test(`${await page.locator("body").evaluate((body) => body.textContent)}${told}`), false);
  // What is not there cannot be opened.
  await box(frame, "404").click({ force: true });
  await box(frame, "9").click();
  await until("the click to arrive", () => frame.opened.length > 0);
  assert.deepEqual(frame.opened, ["9"]);
  await page.locator("#fit").click();
  await frame.screenshot("graph-damaged");
  await page.locator("#as-list").click();
  assert.equal(await page.locator("#list tbody tr").count(), 9);
  await frame.screenshot("graph-damaged-list");
  await close(frame);
});

test("an empty list says so, until there is a task; one that is done can be shown again", async () => {
  // Of another project than the window's: nobody would tell of it by itself.
  const session = (await agent.request("session/create", { name: "Nothing to do", cwd: "/workspace/elsewhere" })).session.id;
  const frame = await openGraph(browser, server, session, { title: "Nothing to do" });
  const { page } = frame;
  await page.getByText("There are no tasks in this list yet.").waitFor();
  await frame.screenshot("graph-empty");
  await list([["The first"], ["The second", 1]], session);
  await until("both to show", async () => (await page.locator(".box").count()) === 2);
  await agent.request("session/setName", { sessionId: session, name: "Something to do" });
  await until("the new name", async () => (await page.locator("#title").innerText()) === "Something to do");
  for (const done of ["1", "2"]) await agent.request("task/update", { listId: session, id: done, status: "completed" });
  await until("both to be done", async () => (await page.locator(".box.state-completed").count()) === 2);
  await page.locator("#completed").click();
  await page.getByText("All 2 tasks are done.").waitFor();
  await frame.screenshot("graph-done");
  await page.getByRole("button", { name: "Show completed tasks" }).last().click();
  await until("both to be back", async () => (await page.locator(".box").count()) === 2);
  await close(frame);
});

test("after a reload it is looked at as before; when the server died it stays, and goes on with the next", async () => {
  const id = await rewrite();
  const [first, second] = [await Server.start(folder.path, CWD), await Server.start(folder.path, CWD)];
  let current = first;
  const wire = {
    request: ((method, params) => current.request(method, params)) as Server["request"],
    on: first.on.bind(first) as Server["on"],
  };
  const frame = await openGraph(browser, wire, id, { title: "Parser rewrite" });
  const { page } = frame;
  await page.locator("#zoom-in").click();
  await box(frame, "7").focus();
  const before = await place(frame, "7");
  await until("the state to be kept", async () => {
    const kept = (await frame.state()) as { focus?: string; listId?: string; centre?: [number, number] } | undefined;
    const [x, y] = await page.locator("#view").evaluate((node) => [node.scrollLeft, node.scrollTop] as const);
    return kept?.focus === "7" && kept.listId === id && kept.centre !== undefined && x >= 0 && y >= 0;
  });
  await first.kill();
  assert.equal(await page.locator(".box").count(), 11);
  await agent.request("task/create", { listId: id, subject: "Added meanwhile" });
  current = second;
  second.on("task/didChange", (change) => frame.feed.didChange(change));
  await frame.feed.reconnected();
  await until("what was missed", async () => (await page.locator(".box").count()) === 12);
  await agent.request("task/create", { listId: id, subject: "Added after" });
  await until("what comes after", async () => (await page.locator(".box").count()) === 13);

  // The last look is kept when it has stood still for a moment.
  let kept = JSON.stringify(await frame.state());
  let times = 0;
  await until("the state to stand still", async () => {
    const now = JSON.stringify(await frame.state());
    times = now === kept ? times + 1 : 0;
    kept = now;
    return times >= 20;
  });
  const [zoom, last] = [await scale(frame), await place(frame, "7")];
  assert.ok(before && last);
  const again = await openGraph(browser, second, id, { state: JSON.parse(kept) });
  const now = await place(again, "7");
  assert.equal(await scale(again), zoom);
  assert.ok(now && Math.abs(now.x - last.x) <= 1 && Math.abs(now.y - last.y) <= 1, JSON.stringify({ last, now }));
  // What is chosen is kept in that moment, however much was moved just before: the tab may be left, and the page gone.
  const chosen = await again.page.evaluate(() => {
    const view = document.getElementById("view") as HTMLElement;
    view.dispatchEvent(new Event("scroll"));
    document.getElementById("as-list")?.click();
    return (window as unknown as { hostState(): { asList?: boolean } }).hostState().asList;
  });
  assert.equal(chosen, true);
  await close(again);
  await close(frame);
  await second.stop();
});

test("500 tasks: it opens where something is being done, and moving about costs no more than with 20", async () => {
  const id = "many";
  const home = join(folder.path, "tasks", id);
  mkdirSync(home, { recursive: true });
  // Twenty-five pieces of work of twenty tasks, each waiting for one or two of the same piece, every second piece for one before it.
  for (let task = 1; task <= 500; task += 1) {
    const [piece, at] = [Math.floor((task - 1) / 20), (task - 1) % 20];
    const blockedBy = [];
    if (at > 0) blockedBy.push(task - 1 - ((task * 7) % Math.min(at, 3)));
    if (at > 4 && task % 3 === 0) blockedBy.push(task - 4);
    if (at === 10 && piece % 2 === 1) blockedBy.push(task - 25);
    const status = task <= 240 ? "completed" : task === 243 ? "in_progress" : "pending";
    const record = {
      id: String(task),
      subject: `Task ${at} of piece ${piece}: move the callers over`,
      status,
      blocks: [],
      blockedBy: blockedBy.map(String),
    };
    writeFileSync(join(home, `${task}.json`), JSON.stringify(record));
  }
  const started = Date.now();
  const frame = await openGraph(browser, server, id, { title: "Everything" });
  const { page } = frame;
  await until("it to be laid out", async () => (await page.locator(".line").count()) > 500);
  const opened = Date.now() - started;
  assert.equal(await page.locator(".box").count(), 500);
  const [view, working] = [await page.locator("#view").boundingBox(), await place(frame, "243")];
  assert.ok(view && working && working.x > view.x && working.x + working.width < view.x + view.width, "what is being done is in view");
  await frame.screenshot("graph-500");

  const long = await frameTime(frame);
  const few = await openGraph(
    browser,
    server,
    await list(Array.from({ length: 20 }, (_, at) => [`Task ${at}`, ...(at > 0 ? [at] : [])] as [string, ...number[]])),
  );
  const brief = await frameTime(few);
  console.log(
    `# 500 tasks laid out in ${opened} ms; a frame of moving takes ${long.toFixed(1)} ms of script and layout, with 20 tasks ${brief.toFixed(1)} ms`,
  );
  assert.ok(long < brief * 6 + 4, `a frame takes ${long} ms, with 20 tasks ${brief} ms`);

  await page.locator("#fit").click();
  await frame.screenshot("graph-500-fit");
  await agent.request("task/update", { listId: id, id: "244", status: "completed" });
  await until("the change", async () => /state-completed/.test((await box(frame, "244").getAttribute("class")) ?? ""));
  await close(few);
  await close(frame);
});

/** Milliseconds of script and layout that a step of moving about and zooming takes, the median of many. */
async function frameTime(frame: GraphFrame): Promise<number> {
  return frame.page.evaluate(async () => {
    const view = document.getElementById("view") as HTMLElement;
    const times: number[] = [];
    for (let step = 0; step < 60; step += 1) {
      const started = performance.now();
      if (step % 4 === 0)
        view.dispatchEvent(
          new WheelEvent("wheel", { deltaY: step % 8 === 0 ? 40 : -40, ctrlKey: true, clientX: 300, clientY: 300, cancelable: true }),
        );
      else view.scrollTo((step * 97) % Math.max(1, view.scrollWidth), (step * 61) % Math.max(1, view.scrollHeight));
      view.dispatchEvent(new Event("scroll"));
      void view.scrollHeight;
      times.push(performance.now() - started);
      await new Promise((resolve) => requestAnimationFrame(resolve));
    }
    return times.sort((a, b) => a - b)[30] ?? 0;
  });
}
