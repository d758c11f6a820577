// What a workspace must not be able to do.
import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { VSCode } from "./support/editor.mjs";
import { agent, makeHome } from "./support/home.mjs";

for (const trust of [true, false]) {
  describe(trust ? "a workspace in restricted mode" : "a trusted workspace", () => {
    const place = makeHome();
    const trap = join(place.root, "sprung");
    let code;
    before(async () => {
      await agent(place, `s = client.session.create(name="mine").session\nclient.task.create(s.id, "of my own home")`);
      const program = join(place.folder, "bin", "crewlog");
      mkdirSync(join(place.folder, "bin"));
      writeFileSync(program, `#!/bin/sh\ntouch ${trap}\n`);
      chmodSync(program, 0o755);
      mkdirSync(join(place.folder, ".vscode"));
      const settings = { "crewlog.server.path": program, "crewlog.server.home": join(place.folder, "home"), "crewlog.server.durability": "process" };
      writeFileSync(join(place.folder, ".vscode", "settings.json"), JSON.stringify(settings));
      code = await VSCode.start({ home: place.home, trust, settings: { "security.workspace.trust.startupPrompt": "never" } });
    });
    after(async () => {
      await code?.stop();
      rmSync(place.root, { recursive: true, force: true });
    });

    test("sets neither the server's path nor its home", async () => {
      const window = await code.open(place.folder);
      await window.crewlog();
      if (trust) await window.page.getByText("Restricted Mode").first().waitFor();
      await window.see("Tasks", "of my own home");
      await window.see("Sessions", "mine");
      await window.shot(trust ? "restricted" : "trusted");
      assert.ok(!existsSync(trap), "the workspace's program was started");
      await window.close();
    });
  });
}
