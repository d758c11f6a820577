// Homes to look at, and another process that works in them.
import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, realpathSync, renameSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const { SHARED, PYTHON } = process.env;

/** Why there is no golden data, or false. For a test's `skip`. */
export const noGolden = SHARED && existsSync(join(SHARED, "golden", "codebot")) ? false : "no golden data: set CREWLOG_SHARED to a folder that has it";

/** A home and a folder for a project of it. With `golden`, the home holds the golden data, and the demo project is the folder's. */
export function makeHome({ golden = false } = {}) {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "crewlog-e2e-")));
  const home = join(root, "home");
  const folder = join(root, "demo-app");
  mkdirSync(folder, { recursive: true });
  if (golden) {
    cpSync(join(SHARED, "golden", "codebot"), home, { recursive: true });
    renameSync(join(home, "projects", "-workspace-demo-app"), join(home, "projects", projectId(folder)));
  }
  return { root, home, folder };
}

export function projectId(folder) {
  return folder.replace(/[^A-Za-z0-9]+/g, "-");
}

/** Another process: a Python agent that does `code` with `client`, a `crewlog.client.Client`. Gives what it printed. */
export async function agent({ home, folder }, code) {
  const program = `import json, sys\nfrom crewlog.client import Client, NewEntry\nwith Client(home=${JSON.stringify(home)}, cwd=${JSON.stringify(folder)}) as client:\n${code
    .trim()
    .split("\n")
    .map((line) => `    ${line}`)
    .join("\n")}\n`;
  const { stdout } = await run(PYTHON, ["-c", program], { maxBuffer: 64 << 20 });
  return stdout.trim();
}

/** A session with a team and tasks; gives its id. */
export function parserTeam(place) {
  return agent(
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
}
