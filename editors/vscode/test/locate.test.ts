import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { after, beforeEach, test } from "node:test";
import { locate, NoServer } from "../src/locate";

const root = mkdtempSync(join(tmpdir(), "crewlog-locate-"));
after(() => rmSync(root, { recursive: true, force: true }));
let number = 0;
let folder = "";
beforeEach(() => {
  folder = join(root, String(number++));
  mkdirSync(folder);
});

function program(...path: string[]): string {
  const file = join(folder, ...path);
  mkdirSync(join(file, ".."), { recursive: true });
  writeFileSync(file, "#!/bin/sh\n");
  chmodSync(file, 0o755);
  return file;
}

const nowhere = { setting: "", python: undefined, path: "", barred: [] };

test("the setting comes first, then the Python environment, then PATH", () => {
  const set = program("set", "crewlog");
  const inEnvironment = program("venv", "bin", "crewlog");
  const onPath = program("path", "crewlog");
  const places = { ...nowhere, setting: set, python: join(folder, "venv", "bin", "python"), path: join(folder, "path") };
  assert.equal(locate(places).command, set);
  assert.equal(locate({ ...places, setting: "" }).command, inEnvironment);
  assert.equal(locate({ ...places, setting: "", python: undefined }).command, onPath);
  assert.deepEqual(locate(places).args, ["serve"]);
});

test("an environment without crewlog is passed over for PATH", () => {
  const onPath = program("path", "crewlog");
  assert.equal(locate({ ...nowhere, python: join(folder, "venv", "bin", "python"), path: join(folder, "path") }).command, onPath);
});

test("a setting that names nothing is an error, not a reason to look elsewhere", () => {
  program("path", "crewlog");
  for (const setting of [join(folder, "gone"), "bin/crewlog", folder]) {
    assert.throws(
      () => locate({ ...nowhere, setting, path: join(folder, "path") }),
      (error) => error instanceof NoServer && error.setting && error.message.includes(setting),
    );
  }
});

test("a file that cannot be run is no program", () => {
  const file = program("path", "crewlog");
  chmodSync(file, 0o644);
  assert.throws(() => locate({ ...nowhere, path: join(folder, "path") }), NoServer);
});

test("relative folders on PATH are not looked at: they would be the workspace's", () => {
  const onPath = program("path", "crewlog");
  assert.equal(locate({ ...nowhere, path: [".", "", "bin", join(folder, "path")].join(delimiter) }).command, onPath);
  assert.throws(() => locate({ ...nowhere, path: [".", "", "node_modules/.bin"].join(delimiter) }), NoServer);
});

test("nothing is started from a folder that is not trusted", () => {
  program("work", ".venv", "bin", "crewlog");
  const workspace = join(folder, "work");
  const bin = join(workspace, ".venv", "bin");
  const places = { ...nowhere, python: join(bin, "python"), path: bin, barred: [workspace] };
  assert.throws(() => locate(places), NoServer);
  assert.equal(locate({ ...places, barred: [`${workspace}-of-another-name`] }).command, join(bin, "crewlog"));
});
