// Work on sessions and plans in the side bar; the server that goes and comes back.
import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import { until, VSCode } from "./support/editor.mjs";
import { agent, makeHome, parserTeam } from "./support/home.mjs";

describe("sessions, plans and the server", () => {
  const place = makeHome();
  let code;
  let window;
  let session;
  before(async () => {
    session = await parserTeam(place);
    code = await VSCode.start({ home: place.home, settings: { "workbench.colorTheme": "Default Dark Modern" } });
    window = await code.open(place.folder);
    await window.crewlog();
    await window.see("Sessions", "fix the parser");
  });
  afterEach((test) => window?.keep(test));
  after(async () => {
    await code?.stop();
    rmSync(place.root, { recursive: true, force: true });
  });
  const named = (text) => window.rows("Sessions").filter({ hasText: text }).count();
  const ids = async () => JSON.parse(await agent(place, "print(json.dumps([s.id for s in client.session.list().sessions]))"));

  test("a plan: made with a generated name, written in the editor, renamed, deleted, brought back", async () => {
    await window.command("Crewlog: New Plan");
    const input = (await window.asked("Name of the plan")).locator("input[type=text]");
    await until("a name is proposed", async () => /^\w+-\w+-\w+$/.test(await input.inputValue()));
    await window.answer("Name of the plan", "ship-it");
    await window.page.locator(".tab", { hasText: "ship-it.md" }).waitFor();
    await window.page.locator(".editor-instance .view-lines").first().click();
    await window.page.keyboard.press("Control+End");
    await window.page.keyboard.type("First the lexer.");
    await window.page.keyboard.press("Control+s");
    await until("another process reads it", async () => (await agent(place, `print(client.plan.load("ship-it").content)`)).includes("First the lexer."));
    await window.shot("plan");
    await window.menu("Plans", "ship-it", "Rename Plan");
    await window.answer("Rename Plan", "ship-it-now");
    await window.see("Plans", "ship-it-now");
    await window.page.locator(".tab", { hasText: "ship-it-now.md" }).waitFor();
    assert.ok(!existsSync(join(place.home, "plans", "ship-it.md")));
    await window.menu("Plans", "ship-it-now", "Delete Plan");
    await window.gone("Plans", "ship-it-now");
    await window.pressNotification("ship-it-now was deleted", "Undo");
    await window.see("Plans", "ship-it-now");
    assert.match(readFileSync(join(place.home, "plans", "ship-it-now.md"), "utf8"), /First the lexer\./);
  });

  test("full-text search opens the session where the words stand", async () => {
    await window.command("Crewlog: Search Sessions");
    const box = await window.asked("Words that were said");
    await box.locator("input[type=text]").fill("zygomorphic");
    await box.locator(".monaco-list-row").filter({ hasText: "zygomorphic" }).first().waitFor();
    await window.shot("search");
    await window.page.keyboard.press("Enter");
    await window.page.locator(".tab", { hasText: "fix the parser" }).waitFor();
    await window.inPage("the words are shown", (frame) => frame.getByText("see zygomorphic.py").first());
    await window.shot("session");
  });

  test("the page of a session grows while an agent works", async () => {
    await agent(place, `client.session.append("${session}", [NewEntry("message", {"role": "assistant", "content": [{"type": "text", "text": "Columns are counted in bytes."}]})])`);
    await window.inPage("what was said is shown", (frame) => frame.getByText("Columns are counted in bytes.").first());
  });

  test("fork from an entry of the page", async () => {
    const first = await agent(place, `print([e.id for e in client.session.entries("${session}", kinds=["message"]).entries][0])`);
    const fork = await window.inPage("the entry can be forked from", (frame) => frame.locator(`[data-action="fork"][data-entry="${first}"]`));
    await fork.click();
    await window.notification("is a fork of").waitFor();
    await until("there are two", async () => (await named("fix the parser")) === 2);
    const forked = (await ids()).find((id) => id !== session);
    assert.equal(await agent(place, `print(len(client.session.snapshot("${forked}").messages))`), "1");
    await window.opened(forked);
    await window.shot("forked");
    await window.command("Notifications: Clear All Notifications");
  });

  test("rename, fork, delete, undo and restore of a session", async () => {
    await agent(place, `for s in client.session.list().sessions:\n    if s.id != "${session}": client.session.delete(s.id)`);
    await until("one is left", async () => (await named("fix the parser")) === 1);
    await window.menu("Sessions", "fix the parser", "Rename Session");
    await window.answer("Rename Session", "parser, solved");
    await window.see("Sessions", "parser, solved");
    await window.menu("Sessions", "parser, solved", "Fork Session");
    await window.notification("is a fork of").waitFor();
    await until("there are two", async () => (await named("parser, solved")) === 2);
    const forked = (await ids()).find((id) => id !== session);
    await window.opened(forked);
    await window.command("Notifications: Clear All Notifications");
    await window.command("Crewlog: Delete Session");
    await window.pick("Pick a session", forked);
    await until("there is one", async () => (await named("parser, solved")) === 1);
    await window.pressNotification("was deleted", "Undo");
    await until("there are two again", async () => (await named("parser, solved")) === 2);
    await window.command("Crewlog: Delete Session");
    await window.pick("Pick a session", session);
    await window.gone("Tasks", "Fix the lexer");
    await window.command("Notifications: Clear All Notifications");
    await window.command("Crewlog: Restore Deleted Session");
    await window.pick("Deleted in this workspace", session);
    await window.see("Tasks", "Fix the lexer");
    await window.see("Team", "ada");
    await until("it is listed again", async () => (await named("parser, solved")) === 2);
  });

  test("a menu keeps its row while an agent changes the list all the time", async () => {
    const busy = agent(
      place,
      `
import time
ids = [client.session.create(name=f"busy {n}").session.id for n in range(3)]
end = time.time() + 12
n = 0
while time.time() < end:
    n += 1
    client.session.append(ids[n % 3], [NewEntry("message", {"role": "user", "content": [{"type": "text", "text": str(n)}]})])
    client.task.update("${session}", "3", subject=f"Write the changelog, line {n}")
    time.sleep(0.05)
print(json.dumps(ids))`,
    );
    const copied = [];
    await window.see("Sessions", "busy 2");
    const first = await window.row("Sessions", "busy 0").innerText();
    for (let round = 0; round < 6; round++) {
      const name = `busy ${round % 3}`;
      await window.page.evaluate(() => navigator.clipboard.writeText("nothing"));
      await window.menu("Sessions", name, "Copy Id");
      await until("something is copied", async () => (await window.page.evaluate(() => navigator.clipboard.readText())) !== "nothing", 5000);
      copied.push(await window.page.evaluate(() => navigator.clipboard.readText()));
    }
    const then = await window.row("Sessions", "busy 0").innerText();
    const ids = JSON.parse(await busy);
    assert.deepEqual(copied, [...ids, ...ids]);
    assert.notEqual(then, first, "the view shows what changes while it changes");
    assert.equal(await window.notification("changed just as you chose").count(), 0);
    await agent(place, `for id in ${JSON.stringify(ids)}:\n    client.session.delete(id)`);
    await window.gone("Sessions", "busy");
  });

  test("rewind to an entry that is picked", async () => {
    await window.command("Crewlog: Rewind Session");
    await window.pick("Pick a session", session);
    await window.pick("The entry to go on from", "Why does the parser fail");
    await window.confirm("Rewind");
    await until("the session stands there", async () => (await agent(place, `print(len(client.session.snapshot("${session}").messages))`)) === "1");
    await window.opened(session);
  });

  test("export writes a file", async () => {
    await window.command("Crewlog: Export Session");
    await window.pick("Pick a session", session);
    await window.pick("As what?", "Markdown");
    const file = join(place.folder, "out.md");
    await window.answer("parser-solved.md", file);
    await until("the file is there", () => existsSync(file) && readFileSync(file, "utf8").includes("Why does the parser fail on tabs?"));
  });

  test("a member's transcript opens, and grows", async () => {
    await window.row("Team", "ada").click();
    await window.inPage("it is shown", (frame) => frame.locator("#feed").getByText("You are ada."));
    await agent(place, `client.transcript.append("${session}", "ada", [{"role": "assistant", "content": [{"type": "text", "text": "And so I am."}]}])`);
    await window.inPage("what was added is shown", (frame) => frame.locator("#feed").getByText("And so I am."));
    await window.shot("transcript");
  });

  test("a server that is killed comes back, and what was seen stays", async () => {
    const ours = code.servers();
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

  test("a server that dies again and again is given up, what was seen stays, and it can be started by hand", async () => {
    await window.command("Notifications: Clear All Notifications");
    const told = window.notification("ended again and again");
    await until("it is given up", async () => {
      for (const pid of code.servers()) process.kill(pid, "SIGKILL");
      return told.isVisible();
    });
    await window.pane("Tasks").getByText("what is shown may be old").waitFor();
    assert.ok((await window.texts("Tasks")).join().includes("Fix the lexer"));
    await until("the status bar warns", async () => (await (await window.statusBar()).innerText()).includes("Crewlog"));
    await window.shot("given-up");
    await window.pressNotification("ended again and again", "Restart Server");
    await agent(place, `client.task.create("${session}", "After the restart")`);
    await window.see("Tasks", "After the restart");
    await window.pane("Tasks").getByText("what is shown may be old").waitFor({ state: "hidden" });
  });
});
