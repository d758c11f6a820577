// Work on tasks in the side bar, with another process that changes things meanwhile.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { after, afterEach, before, describe, test } from "node:test";
import { until, VSCode } from "./support/editor.mjs";
import { agent, makeHome, parserTeam } from "./support/home.mjs";

describe("tasks", () => {
  const place = makeHome();
  let code;
  let window;
  let session;
  before(async () => {
    session = await parserTeam(place);
    code = await VSCode.start({ home: place.home });
    window = await code.open(place.folder);
    await window.crewlog();
    await window.see("Tasks", "Fix the lexer");
  });
  afterEach((test) => window?.keep(test));
  after(async () => {
    await code?.stop();
    rmSync(place.root, { recursive: true, force: true });
  });
  const task = async (id) => JSON.parse(await agent(place, `print(json.dumps(json.loads(bytes(client.task.get("${session}", "${id}").raw))))`));

  test("what another process does appears without anything being touched", async () => {
    await agent(
      place,
      `
client.task.create("${session}", "Found meanwhile", active_form="Looking at what was found")
client.task.claim("${session}", "4", "ada")
client.task.update("${session}", "4", status="in_progress")`,
    );
    const row = await window.see("Tasks", "Looking at what was found");
    assert.match(await row.innerText(), /ada/);
    await until("the team shows it too", async () => (await window.row("Team", "ada").innerText()).includes("Looking at what was found"));
    await until("the status bar counts it", async () => /3\s*1\s*0/.test(await (await window.statusBar()).innerText()));
    await window.shot("live");
    await agent(place, `client.session.set_name("${session}", "fix the parser for good")`);
    await window.see("Sessions", "fix the parser for good");
    await agent(place, `client.plan.save("made-by-an-agent", "# A plan")`);
    await window.see("Plans", "made-by-an-agent");
  });

  test("what was completed stands on top for a while", async () => {
    await agent(place, `client.task.update("${session}", "4", status="completed")`);
    await window.see("Tasks", "Just completed");
    assert.match((await window.texts("Tasks")).slice(0, 2).join(" "), /Just completed.*Found meanwhile/);
    await window.shot("just-completed");
    await window.gone("Tasks", "Just completed");
    await window.see("Tasks", "Completed");
  });

  test("a lapsed lease is marked", async () => {
    await agent(place, `client.task.create("${session}", "Held by one that died")\nclient.task.claim("${session}", "5", "eve", lease_ms=1500, auto_renew=False)`);
    await window.see("Tasks", "eve");
    await window.see("Tasks", "lease lapsed");
    await window.shot("lapsed");
    await agent(place, `client.task.delete("${session}", "5")`);
    await window.gone("Tasks", "Held by one that died");
  });

  test("claim as me, release, complete, reopen, from the context menu", async () => {
    await window.menu("Tasks", "Reproduce the failure", "Claim as Me");
    await until("it is mine", async () => (await task("1")).owner === "you");
    await window.see("Tasks", "#1 · you");
    await window.menu("Tasks", "#1 · you", "Release Task");
    await until("it is nobody's", async () => !(await task("1")).owner);
    await window.menu("Tasks", "Reproduce the failure", "Complete Task");
    await until("it is completed", async () => (await task("1")).status === "completed");
    await window.gone("Tasks", "waits for #1");
    await window.menu("Tasks", "Reproduce the failure", "Reopen Task");
    await until("it is open", async () => (await task("1")).status === "pending");
    await window.see("Tasks", "waits for #1");
  });

  test("a claim that cannot be had says why, and what to do", async () => {
    await window.row("Tasks", "Fix the lexer").click({ button: "right", position: { x: 60, y: 10 } });
    await window.page.locator(".monaco-menu .action-label").filter({ hasText: "Complete Task" }).first().waitFor();
    assert.equal(await window.page.locator(".monaco-menu .action-label").filter({ hasText: "Claim as Me" }).count(), 0);
    await window.shot("context-menu", { pointing: true });
    await window.page.keyboard.press("Escape");
    await agent(place, `client.task.create("${session}", "Wanted by two")\nclient.task.claim("${session}", "6", "ada")`);
    await window.see("Tasks", "#6 · ada");
    await window.command("Crewlog: Edit Task");
    await window.pick("Pick a task", "Wanted by two");
    await window.pick("What to change", "Blockers");
    await window.pick("Tasks that it waits for", "Fix the lexer");
    await window.page.keyboard.press("Enter");
    await until("it waits", async () => (await task("6")).blockedBy.includes("2"));
    await window.command("Crewlog: Edit Task");
    await window.pick("Pick a task", "Fix the lexer");
    await window.pick("What to change", "Blockers");
    await window.pick("Tasks that it waits for", "Wanted by two");
    await window.page.keyboard.press("Enter");
    await window.notification("would wait for each other").waitFor();
    await window.shot("error");
    await window.command("Notifications: Clear All Notifications");
    await agent(place, `client.task.delete("${session}", "6")`);
  });

  test("a new task, edited, deleted, by the palette", async () => {
    await window.command("Crewlog: New Task");
    await window.answer("What is to be done", "Tell the users");
    await window.see("Tasks", "Tell the users");
    await window.command("Crewlog: Edit Task");
    await window.pick("Pick a task", "Tell the users");
    await window.pick("What to change", "Subject");
    await window.answer("Subject", "Tell all the users");
    await window.see("Tasks", "Tell all the users");
    await window.command("Crewlog: Delete Task");
    await window.pick("Pick a task", "Tell all the users");
    await window.confirm("Delete");
    await window.gone("Tasks", "Tell all the users");
  });

  test("a task that is dragged onto another becomes its blocker, and that can be undone", async () => {
    await window.row("Tasks", "Reproduce the failure").dragTo(window.row("Tasks", "Write the changelog"));
    await until("it waits", async () => (await task("3")).blockedBy.includes("1"));
    await window.see("Tasks", "#3 · waits for #1");
    await window.shot("dragged");
    await window.pressNotification("now waits for #1", "Undo");
    await until("it waits no more", async () => (await task("3")).blockedBy.length === 0);
  });

  test("filter by status, by owner, and clear it", async () => {
    await agent(place, `client.task.claim("${session}", "3", "ada")`);
    await window.see("Tasks", "#3 · ada");
    await window.command("Crewlog: Filter Tasks");
    await window.pick("Statuses and owners", "blocked");
    await window.shot("filter");
    await window.page.keyboard.press("Enter");
    await window.gone("Tasks", "Write the changelog");
    await window.see("Tasks", "Fix the lexer");
    await window.shot("filtered");
    await window.command("Crewlog: Clear Task Filter");
    await window.see("Tasks", "Write the changelog");
    await window.command("Crewlog: Filter Tasks");
    await window.pick("Statuses and owners", "ada");
    await window.page.keyboard.press("Enter");
    await window.gone("Tasks", "Fix the lexer");
    await window.see("Tasks", "Write the changelog");
    await window.command("Crewlog: Clear Task Filter");
    await window.see("Tasks", "Fix the lexer");
    await agent(place, `client.task.release("${session}", "3", "ada")`);
    await window.gone("Tasks", "#3 · ada");
  });

  test("a filter that nothing fits says so, and can be cleared there", async () => {
    await window.command("Crewlog: Filter Tasks");
    await window.pick("Statuses and owners", "lapsed");
    await window.page.keyboard.press("Enter");
    await window.pane("Tasks").getByText("No task fits the filter").waitFor();
    await window.shot("nothing-fits");
    await window.pane("Tasks").locator(".monaco-button").filter({ hasText: "Clear Filter" }).click();
    await window.see("Tasks", "Fix the lexer");
  });

  test("a task opens as text", async () => {
    await window.row("Tasks", "Fix the lexer").click();
    await window.page.locator(".tab", { hasText: "Task 2" }).waitFor();
    await until("its blocker is named", async () => (await window.editorText()).includes("Waits for   #1 Reproduce the failure"));
    await window.shot("task");
    await agent(place, `client.task.update("${session}", "2", description="Tabs count as eight.")`);
    await until("what changes is shown", async () => (await window.editorText()).includes("Tabs count as eight."));
  });

  test("the id is copied", async () => {
    await window.menu("Tasks", "Fix the lexer", "Copy Id");
    await until("it is on the clipboard", async () => (await window.page.evaluate(() => navigator.clipboard.readText())) === "2");
  });

  test("the dependency graph shows the tasks, and a click opens one", async () => {
    await window.command("Crewlog: Show Dependency Graph");
    const box = await window.inPage("the graph is drawn", (frame) => frame.locator('.box[data-id="1"]'));
    await window.shot("graph");
    await agent(place, `client.task.create("${session}", "Grown in the graph")`);
    await window.inPage("a new task is drawn", (frame) => frame.locator(".box").filter({ hasText: "Grown in the graph" }));
    await box.click();
    await window.page.locator(".tab.active", { hasText: "Task 1" }).waitFor();
    await until("it is told", async () => (await window.editorText()).includes("#1 Reproduce the failure"));
  });

  test("the counts in the status bar open the view", async () => {
    await window.page.locator('.activitybar .action-item a.action-label[aria-label^="Explorer"]').click();
    await window.pane("Tasks").waitFor({ state: "hidden" });
    await (await window.statusBar()).click();
    await window.pane("Tasks").waitFor();
  });

  test("what takes longer than 300 ms shows progress", async () => {
    const [server] = code.servers();
    process.kill(server, "SIGSTOP");
    try {
      await window.menu("Tasks", "Write the changelog", "Claim as Me");
      const progress = window.notification("Claiming the task");
      await progress.waitFor();
      await progress.locator(".monaco-progress-container.active").waitFor();
      await window.shot("progress");
    } finally {
      process.kill(server, "SIGCONT");
    }
    await window.see("Tasks", "#3 · you");
    await until("the progress is gone", async () => !(await window.notification("Claiming the task").isVisible()));
  });
});
