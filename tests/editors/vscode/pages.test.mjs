// The pages of sessions, transcripts and graphs come back with the window.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { after, afterEach, before, describe, test } from "node:test";
import { until, VSCode } from "./support/editor.mjs";
import { agent, makeHome, parserTeam } from "./support/home.mjs";

describe("pages", () => {
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
  const tab = (name) => window.page.getByRole("tab", { name, exact: true });
  const feed = (words) => window.inPage(`${words} on the page`, (frame) => frame.locator("#feed").getByText(words).first());

  test("after a reload of the window they are there again, as they were", async () => {
    await window.command("Crewlog: Show Dependency Graph");
    const box = await window.inPage("the graph", (frame) => frame.locator('.box[data-id="2"]'));
    await box.focus();
    await window.page.keyboard.press("l");
    await window.inPage("the graph as a list", (frame) => frame.locator('#list tr[data-row="2"]'));
    await window.row("Team", "ada").click();
    await feed("You are ada.");
    await window.row("Sessions", "fix the parser").click();
    await feed("Why does the parser fail");
    await window.command("Developer: Reload Window");
    await window.page.locator(".monaco-workbench").waitFor({ state: "detached" });
    await until("the tabs to be back", async () => (await window.page.locator(".tab").count()) === 3);

    await tab("fix the parser").click();
    await feed("Why does the parser fail");
    await tab("Transcript of ada").click();
    await feed("You are ada.");
    await tab("Graph: fix the parser").click();
    await window.inPage("the graph, still as a list", (frame) => frame.locator('#list tr[data-row="2"]'));
    await window.shot("pages-after-reload");

    // They are as live as before.
    await agent(place, `client.task.create("${session}", "Added after the reload")`);
    await window.inPage("what others add", (frame) => frame.locator("#list tr", { hasText: "Added after the reload" }));
    await tab("fix the parser").click();
    await agent(place, `client.session.append("${session}", [NewEntry("message", {"role": "assistant", "content": [{"type": "text", "text": "Said after the reload."}]})])`);
    await feed("Said after the reload.");
    assert.equal(await window.page.locator(".tab").count(), 3);
  });
});
