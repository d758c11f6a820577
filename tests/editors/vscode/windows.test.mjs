// Windows of other kinds: several folders, nothing there yet, no server.
import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import { until, VSCode } from "./support/editor.mjs";
import { agent, makeHome } from "./support/home.mjs";

describe("several folders", () => {
  const place = makeHome();
  const second = { home: place.home, folder: join(place.root, "library") };
  const third = { home: place.home, folder: join(place.root, "elsewhere") };
  let code;
  let window;
  before(async () => {
    mkdirSync(join(place.root, "library-itself"));
    symlinkSync(join(place.root, "library-itself"), second.folder); // agents name it by its own path
    mkdirSync(third.folder);
    for (const one of [place, second, third]) {
      const name = one.folder.split("/").at(-1);
      await agent(one, `s = client.session.create(name="session of ${name}").session\nclient.task.create(s.id, "task of ${name}")`);
    }
    writeFileSync(join(place.root, "both.code-workspace"), JSON.stringify({ folders: [{ path: place.folder }, { path: second.folder }] }));
    code = await VSCode.start({ home: place.home });
    window = await code.open(join(place.root, "both.code-workspace"));
    await window.crewlog();
  });
  afterEach((test) => window?.keep(test));
  after(async () => {
    await code?.stop();
    rmSync(place.root, { recursive: true, force: true });
  });

  test("each folder's project is shown, others are not, also when they change", async () => {
    await window.see("Sessions", "session of demo-app");
    await window.see("Sessions", "session of library");
    await window.see("Tasks", "session of demo-app");
    await window.see("Tasks", "session of library");
    await agent(third, `s = client.session.create(name="another one elsewhere").session\nclient.task.create(s.id, "not to be seen")`);
    await agent(second, `client.session.create(name="another one of library")`);
    await window.see("Sessions", "another one of library");
    for (const view of ["Sessions", "Tasks"]) assert.doesNotMatch((await window.texts(view)).join(), /elsewhere/);
    await window.shot("several-folders");
  });
});

describe("a first window", () => {
  const place = makeHome();
  let code;
  let window;
  before(async () => {
    code = await VSCode.start({ home: place.home, path: "/usr/bin:/bin" });
    window = await code.open(place.folder);
    await window.crewlog();
  });
  afterEach((test) => window?.keep(test));
  after(async () => {
    await code?.stop();
    rmSync(place.root, { recursive: true, force: true });
  });

  test("welcome views tell what to do, and the first task is made from there", async () => {
    await window.pane("Tasks").getByText("No tasks in this project yet").waitFor();
    await window.pane("Sessions").getByText("No sessions in this project yet").waitFor();
    await window.pane("Plans").getByText("No plans yet").waitFor();
    await window.pane("Team").getByText("No team at work").waitFor();
    await window.shot("welcome");
    assert.equal(await window.hasCommand("Crewlog: Delete Task"), false);
    assert.ok(!existsSync(place.home), "looking leaves nothing behind");
    await window.pane("Tasks").locator(".monaco-button").filter({ hasText: "New Task" }).click();
    await window.pick("In which list?", "New list");
    await window.answer("What is to be done", "The very first");
    await window.see("Tasks", "The very first");
  });

  test("a server that is not there is said clearly, with what to do; once it is there, it is used", async () => {
    code.change({ "crewlog.server.path": "" });
    await window.notification("The crewlog server was not found").waitFor();
    await until("the status bar warns", async () => (await (await window.statusBar()).innerText()).includes("Crewlog"));
    await window.shot("server-gone");
    await window.command("Notifications: Clear All Notifications");
    code.change({});
    await until("the status bar counts again", async () => /1\s*0\s*0/.test(await (await window.statusBar()).innerText()));
    await agent(place, `client.task.create("board", "The second")`);
    await window.see("Tasks", "The second");
  });

  test("so it is in a window that opens without one", async () => {
    code.change({ "crewlog.server.path": "" });
    await window.close();
    window = await code.open(place.folder);
    await window.crewlog();
    await window.notification("The crewlog server was not found").waitFor();
    await window.pane("Tasks").locator(".monaco-button").filter({ hasText: "Set Its Path" }).waitFor();
    await window.shot("no-server");
  });

  test("a server that ends at once is not started again and again", async () => {
    const program = join(place.root, "broken");
    writeFileSync(program, `#!/bin/sh\necho "no module named crewlog" >&2\necho >>${program}.started\nexit 1\n`);
    chmodSync(program, 0o755);
    await window.command("Notifications: Clear All Notifications");
    code.change({ "crewlog.server.path": program });
    await window.notification("ended before it was ready").waitFor();
    await window.pane("Tasks").locator(".monaco-button").filter({ hasText: "Restart It" }).waitFor();
    await window.shot("broken-server");
    await window.pressNotification("ended before it was ready", "Show Log");
    // what stands in the log is not to be seen here: without its compiled part, this VS Code writes no log files
    await until("the log is shown", async () => (await window.page.locator(".panel select").allInnerTexts()).join().includes("Crewlog"));
    assert.equal(readFileSync(`${program}.started`, "utf8"), "\n");
  });

  test("a server of another version says which of the two is to be updated; the right one is used as soon as it is set", async () => {
    const program = join(place.root, "newer");
    const answer = JSON.stringify({ capabilities: { experimental: { crewlog: { protocolVersion: 2 } } } });
    // Node answers initialize, and all that follows, with the same
    writeFileSync(
      program,
      `#!${process.execPath}
let text = Buffer.alloc(0);
process.stdin.on("data", (data) => {
  text = Buffer.concat([text, data]);
  for (;;) {
    const end = text.indexOf("\\r\\n\\r\\n");
    if (end < 0) return;
    const length = Number(/Content-Length: (\\d+)/i.exec(text.subarray(0, end).toString())[1]);
    if (text.length < end + 4 + length) return;
    const message = JSON.parse(text.subarray(end + 4, end + 4 + length).toString());
    text = text.subarray(end + 4 + length);
    if (message.method === "exit") process.exit(0);
    if (message.id === undefined) continue;
    const body = JSON.stringify({ jsonrpc: "2.0", id: message.id, result: ${answer} });
    process.stdout.write(\`Content-Length: \${Buffer.byteLength(body)}\\r\\n\\r\\n\${body}\`);
  }
});
`,
    );
    chmodSync(program, 0o755);
    await window.command("Notifications: Clear All Notifications");
    code.change({ "crewlog.server.path": program });
    await window.notification("speaks version 2 of the protocol; this extension needs version 1. Update this extension.").waitFor();
    await window.shot("newer-server");
    await window.command("Notifications: Clear All Notifications");
    code.change({});
    await window.see("Tasks", "The second");
  });
});
