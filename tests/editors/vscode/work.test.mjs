// Work in the side bar, with another process that changes things meanwhile.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { until, VSCode } from "./support/editor.mjs";
import { agent, makeHome } from "./support/home.mjs";

describe("work in the sidebar", () => {
  const place = makeHome();
  let code;
  let window;
  let session;
  before(async () => {
    session = await agent(
      place,
      `
session = client.session.create(name="fix the parser").session
say = lambda role, text: NewEntry("message", {"role": role, "content": [{"type": "text", "text": text}]})
client.session.append(session.id, [NewEntry("model_change", {"provider": "anthropic", "model": "claude-sonnet-4-5"})])
client.session.append(session.id, [say("user", "Why does the parser fail on tabs?"), say("assistant", "The lexer counts columns wrongly, see zygomorphic.py")])
for subject in ("Reproduce the failure", "Fix the lexer", "Write the changelog"):
    client.task.create(session.id, subject)
client.task.update(session.id, "2", add_blocked_by=["1"])
client.roster.set_team(session.id, "parsers")
client.roster.upsert_member(session.id, {"name": "ada", "agent_type": "coder", "color": "#c2185b"})
client.transcript.append(session.id, "ada", [{"role": "user", "content": [{"type": "text", "text": "You are ada."}]}])
print(session.id)`,
    );
    code = await VSCode.start({ home: place.home });
    window = await code.open(place.folder);
    await window.crewlog();
    await window.see("Tasks", "Fix the lexer");
  });
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
    await window.shot("context-menu");
    await window.page.keyboard.press("Escape");
    await agent(place, `client.task.create("${session}", "Wanted by two")\nclient.task.claim("${session}", "6", "ada")`);
    await window.see("Tasks", "#6 · ada");
    await window.command("Crewlog: Edit Task");
    await window.pick("Wanted by two");
    await window.pick("Blockers");
    await window.page.locator(".quick-input-list .monaco-list-row").filter({ hasText: "Fix the lexer" }).first().click();
    await window.page.keyboard.press("Enter");
    await until("it waits", async () => (await task("6")).blockedBy.includes("2"));
    await window.command("Crewlog: Edit Task");
    await window.pick("Fix the lexer");
    await window.pick("Blockers");
    await window.page.locator(".quick-input-list .monaco-list-row").filter({ hasText: "Wanted by two" }).first().click();
    await window.page.keyboard.press("Enter");
    await window.notification("would wait for each other").waitFor();
    await window.shot("error");
    await window.command("Notifications: Clear All Notifications");
    await agent(place, `client.task.delete("${session}", "6")`);
  });

  test("a new task, edited, deleted, by the palette", async () => {
    await window.command("Crewlog: New Task");
    await window.answer("Tell the users");
    await window.see("Tasks", "Tell the users");
    await window.command("Crewlog: Edit Task");
    await window.pick("Tell the users");
    await window.pick("Subject");
    await window.answer("Tell all the users");
    await window.see("Tasks", "Tell all the users");
    await window.command("Crewlog: Delete Task");
    await window.pick("Tell all the users");
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

  test("filter by status and owner, and clear it", async () => {
    await window.command("Crewlog: Filter Tasks");
    await window.page.locator(".quick-input-list .monaco-list-row").filter({ hasText: "blocked" }).first().click();
    await window.shot("filter");
    await window.page.keyboard.press("Enter");
    await window.gone("Tasks", "Write the changelog");
    await window.see("Tasks", "Fix the lexer");
    await window.shot("filtered");
    await window.command("Crewlog: Clear Task Filter");
    await window.see("Tasks", "Write the changelog");
  });

  test("a task opens as text", async () => {
    await window.row("Tasks", "Fix the lexer").click();
    await window.page.locator(".tab", { hasText: "Task 2" }).waitFor();
    await until("its blocker is named", async () => (await window.page.locator(".editor-instance .view-lines").innerText()).replace(/\u00a0/g, " ").includes("Waits for   #1 Reproduce the failure"));
    await window.shot("task");
  });

  test("a plan: made with a generated name, written in the editor, renamed, deleted, brought back", async () => {
    await window.command("Crewlog: New Plan");
    const input = window.page.locator(".quick-input-widget input[type=text]");
    await until("a name is proposed", async () => /^\w+-\w+-\w+$/.test(await input.inputValue()));
    await window.answer("ship-it");
    await window.page.locator(".tab", { hasText: "ship-it.md" }).waitFor();
    await window.page.locator(".editor-instance .view-lines").first().click();
    await window.page.keyboard.press("Control+End");
    await window.page.keyboard.type("First the lexer.");
    await window.page.keyboard.press("Control+s");
    await until("another process reads it", async () => (await agent(place, `print(client.plan.load("ship-it").content)`)).includes("First the lexer."));
    await window.shot("plan");
    await window.menu("Plans", "ship-it", "Rename Plan");
    await window.answer("ship-it-now");
    await window.see("Plans", "ship-it-now");
    await window.page.locator(".tab", { hasText: "ship-it-now.md" }).waitFor();
    assert.ok(!existsSync(join(place.home, "plans", "ship-it.md")));
    await window.menu("Plans", "ship-it-now", "Delete Plan");
    await window.gone("Plans", "ship-it-now");
    await window.pressNotification("ship-it-now was deleted", "Undo");
    await window.see("Plans", "ship-it-now");
    assert.match(readFileSync(join(place.home, "plans", "ship-it-now.md"), "utf8"), /First the lexer\./);
  });

  test("full-text search opens the session", async () => {
    await window.command("Crewlog: Search Sessions");
    await window.page.locator(".quick-input-widget input[type=text]").fill("zygomorphic");
    await window.page.locator(".quick-input-list .monaco-list-row").filter({ hasText: "zygomorphic" }).first().waitFor();
    await window.shot("search");
    await window.page.keyboard.press("Enter");
    await window.page.locator(".tab", { hasText: "fix the parser for good" }).waitFor();
  });

  test("rename, fork, delete and undo of a session", async () => {
    await window.menu("Sessions", "fix the parser for good", "Rename Session");
    await window.answer("parser, solved");
    await window.see("Sessions", "parser, solved");
    await window.menu("Sessions", "parser, solved", "Fork Session");
    await window.notification("is a fork of").waitFor();
    await until("there are two", async () => (await window.rows("Sessions").filter({ hasText: "parser, solved" }).count()) === 2);
    await window.command("Notifications: Clear All Notifications");
    const forked = JSON.parse(await agent(place, `print(json.dumps([s.id for s in client.session.list().sessions]))`)).find((id) => id !== session);
    await window.command("Crewlog: Delete Session");
    await window.pick(forked);
    await until("there is one", async () => (await window.rows("Sessions").filter({ hasText: "parser, solved" }).count()) === 1);
    await window.pressNotification("was deleted", "Undo");
    await until("there are two again", async () => (await window.rows("Sessions").filter({ hasText: "parser, solved" }).count()) === 2);
  });

  test("rewind to an entry that is picked", async () => {
    await window.command("Crewlog: Rewind Session");
    await window.pick(session);
    await window.pick("Why does the parser fail");
    await window.confirm("Rewind");
    await until("the session stands there", async () => {
      const said = await agent(place, `print(len(client.session.snapshot("${session}").messages))`);
      return said === "1";
    });
  });

  test("export writes a file", async () => {
    await window.command("Crewlog: Export Session");
    await window.pick(session);
    await window.pick("Markdown");
    const file = join(place.folder, "out.md");
    await window.answer(file);
    await until("the file is there", () => existsSync(file) && readFileSync(file, "utf8").includes("Why does the parser fail on tabs?"));
  });

  test("a server that is killed comes back, and what was seen stays", async () => {
    const pids = () => execFileSync("ps", ["-eo", "pid,args"], { encoding: "utf8" }).split("\n").filter((line) => line.includes("crewlog serve")).map((line) => Number(line.trim().split(" ")[0]));
    const ours = pids().filter((pid) => readFileSync(`/proc/${pid}/environ`, "utf8").includes(`HOME=${code.folder}`));
    assert.equal(ours.length, 1);
    process.kill(ours[0], "SIGKILL");
    assert.ok((await window.texts("Tasks")).join().includes("Fix the lexer"));
    await agent(place, `client.task.create("${session}", "Added while it was away")`);
    await window.see("Tasks", "Added while it was away");
    assert.ok((await window.texts("Tasks")).join().includes("Fix the lexer"));
    await agent(place, `client.task.create("${session}", "Heard by the new one")`);
    await window.see("Tasks", "Heard by the new one");
    await window.shot("reconnected");
    await window.menu("Tasks", "Heard by the new one", "Claim as Me");
    await window.see("Tasks", "· you");
  });

  test("restart by hand", async () => {
    await window.command("Crewlog: Restart Server");
    await agent(place, `client.task.create("${session}", "After the restart")`);
    await window.see("Tasks", "After the restart");
  });
});
