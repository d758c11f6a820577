// A home made of the golden data, as it comes up.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import { until, VSCode } from "./support/editor.mjs";
import { makeHome, noGolden } from "./support/home.mjs";

describe("golden data in the sidebar", { skip: noGolden }, () => {
  const place = noGolden ? {} : makeHome({ golden: true });
  let code;
  let window;
  before(async () => {
    code = await VSCode.start({ home: place.home });
    window = await code.open(place.folder);
    await window.crewlog();
  });
  afterEach((test) => window?.keep(test));
  after(async () => {
    await code?.stop();
    rmSync(place.root, { recursive: true, force: true });
  });

  test("the four views fill from the home", async () => {
    await window.see("Tasks", "Writing the code");
    await window.see("Tasks", "waits for #2");
    await window.see("Sessions", "重构 <存储> & 测试");
    await window.see("Plans", "calm-writing-river");
    await window.see("Team", "alice");
    await window.see("Team", "Transcripts of others");
    await until("bob is said to write the code", async () => (await window.row("Team", "bob").innerText()).includes("Writing the code"));
    await until("the badge counts the open tasks", async () => (await window.page.locator('.activitybar .action-item:has([aria-label^="Crewlog"]) .badge-content').innerText()) === "3");
    await window.shot("golden");
  });

  test("a blocker stands below the task that waits for it, and the done ones are folded away", async () => {
    await window.expand("Tasks", "测试");
    await until("it is there twice", async () => (await window.rows("Tasks").filter({ hasText: "Writing the code" }).count()) === 2);
    assert.equal(await window.rows("Tasks").filter({ hasText: "Design the store" }).count(), 0);
    await window.expand("Tasks", "Completed");
    await window.see("Tasks", "Design the store");
  });

  test("a session has its model, age and messages, and opens as a page", async () => {
    await window.only("Sessions");
    await until("the model is told", async () => (await window.row("Sessions", "first era").innerText()).includes("claude-opus-4-1"));
    assert.match(await window.row("Sessions", "first era").innerText(), /4 msg/);
    await window.row("Sessions", "first era").click();
    await window.page.locator(".tab", { hasText: "first era" }).waitFor();
    await window.inPage("the session's messages are shown", (frame) => frame.getByText("first era").first());
    await window.shot("session");
  });

  test("a transcript opens on a click", async () => {
    await window.only("Team");
    await window.row("Team", "alice").click();
    await window.page.locator(".tab", { hasText: "alice" }).waitFor();
    await window.inPage("its messages are shown", (frame) => frame.locator("#feed").getByText("after checkpoint"));
    await window.shot("transcript");
  });

  test("the log can be looked at", async () => {
    await window.command("Crewlog: Show Log");
    await window.page.locator(".panel .output-view, .panel .pane-body").first().waitFor();
    await until("its channel is chosen", async () => (await window.page.locator(".panel select").allInnerTexts()).join().includes("Crewlog"));
    await window.command("View: Toggle Panel Visibility");
  });
});
