// What a record must not be able to do.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import { until, VSCode } from "./support/editor.mjs";
import { agent, makeHome } from "./support/home.mjs";

describe("hostile records", () => {
  const place = makeHome();
  const SCRIPT = "<script>top.sprung=1;window.sprung=1</script><img src=x onerror='window.sprung=1'>";
  const LINK = "[click me](command:workbench.action.closeWindow)";
  let code;
  let window;
  let session;
  before(async () => {
    session = await agent(
      place,
      `
script, link = ${JSON.stringify(SCRIPT)}, ${JSON.stringify(LINK)}
session = client.session.create(name=link + " $(alert) " + script).session
say = lambda role, text: NewEntry("message", {"role": role, "content": [{"type": "text", "text": text}]})
client.session.append(session.id, [
    say("user", script + link + "\\u202egnp.exe\\u202c <a href='command:workbench.action.quit'>quit</a> <iframe src='https://example.com'></iframe>"),
    say("assistant", "![x](https://example.com/x.png) " + script + " [run](command:workbench.action.terminal.new) <style>*{display:none}</style>"),
    NewEntry("message", {"role": "tool", "content": [{"type": "text", "text": "x" * 5_000_000}], "metadata": {"tool_call_id": "none"}}),
    NewEntry("message", {"role": "user", "content": [{"type": "image", "image": {"url": "javascript:window.sprung=1", "mime_type": "text/html"}}, {"type": script, "text": script}]}),
    NewEntry(script, {"x": script}),
    say("user", "after the long line"),
])
client.task.create(session.id, script + link + "\\u202eltr $(trash)", description=script + link)
client.task.create(session.id, "line one\\nline two\\r\\n\\tthree\\x1b[31m")
client.roster.upsert_member(session.id, {"name": link, "agent_type": script, "color": "red' onload='window.sprung=1"})
client.plan.save("[x](command:x) <b>$(bug)", "# " + script)
print(session.id)`,
    );
    code = await VSCode.start({ home: place.home });
    window = await code.open(place.folder);
    window.page.on("dialog", () => assert.fail("a dialog came up"));
    await window.crewlog();
  });
  afterEach((test) => window?.keep(test));
  after(async () => {
    await code?.stop();
    rmSync(place.root, { recursive: true, force: true });
  });

  /** Nothing that stands in the records has run, in any frame, and nothing was asked for outside. */
  async function harmless() {
    for (const frame of window.page.frames()) {
      assert.equal(await frame.evaluate(() => window.sprung), undefined, `something ran in ${frame.url()}`);
      assert.equal(await frame.locator('a[href^="command:"], a[data-href^="command:"], a[href^="javascript:"], iframe[src*="example.com"]').count(), 0);
    }
  }

  test("stand in the views as text, in one line each", async () => {
    await window.see("Tasks", "<script>top.sprung=1");
    await window.see("Tasks", "[click me](command:");
    await window.see("Tasks", "line one line two three");
    await window.see("Sessions", "$(alert)");
    await window.see("Plans", "[x](command:x) <b>$(bug)");
    await window.see("Team", "[click me](command:");
    for (const view of ["Tasks", "Sessions", "Plans", "Team"]) {
      assert.equal(await window.rows(view).locator("a[href^='command:'], img, script, .codicon-alert, .codicon-bug").count(), 0, view);
    }
    assert.doesNotMatch((await window.texts("Tasks")).join(""), /[\u202a-\u202e\u2066-\u2069\u001b]/);
    await window.row("Tasks", "<script>").hover();
    await window.page.locator(".monaco-hover:visible, .workbench-hover:visible").filter({ hasText: "Status: ready" }).first().waitFor();
    assert.equal(await window.page.locator(".workbench-hover a, .monaco-hover a, .workbench-hover img").count(), 0);
    await window.shot("hostile-views", { pointing: true });
    await harmless();
  });

  test("stand in messages and picks as text", async () => {
    await window.command("Crewlog: Delete Session");
    await window.page.locator(".quick-input-list .monaco-list-row").first().waitFor();
    assert.equal(await window.page.locator(".quick-input-list a[href], .quick-input-list a[data-href], .quick-input-list .codicon-alert").count(), 0);
    await window.shot("hostile-pick");
    await window.pick("Pick a session", session);
    const told = window.notification("was deleted");
    await told.waitFor();
    assert.equal(await told.locator(".notification-list-item-message a").count(), 0);
    await window.shot("hostile-message");
    await window.pressNotification("was deleted", "Undo");
    await window.see("Sessions", "$(alert)");
    await harmless();
  });

  test("open as a page in which nothing runs, with a line of 5 MB", async () => {
    await window.row("Sessions", "$(alert)").click();
    await window.inPage("the end of the session is shown", (frame) => frame.getByText("after the long line").first());
    await window.shot("hostile-session");
    await harmless();
  });

  test("a task opens as text", async () => {
    await window.row("Tasks", "<script>").click();
    await until("it is shown", async () => (await window.editorText()).includes("<script>top.sprung=1"));
    await window.shot("hostile-task");
    await harmless();
  });
});
