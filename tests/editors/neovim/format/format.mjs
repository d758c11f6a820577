// Formats the plugin's Lua with StyLua, as editors/neovim/stylua.toml says; with --check tells what is not formatted, and ends with 1.
// StyLua's own program is not to be had from a registry: this is its library.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { Config, formatCode, IndentType, OutputVerification } from "@johnnymorganz/stylua";

const plugin = fileURLToPath(new URL("../../../../editors/neovim", import.meta.url));
const settings = Object.fromEntries(
  Array.from(readFileSync(join(plugin, "stylua.toml"), "utf8").matchAll(/^(\w+) = "?(\w+)"?$/gm), ([, name, value]) => [name, value]),
);

function config() {
  const made = Config.new(); // each is used up by one file
  made.column_width = Number(settings.column_width);
  made.indent_type = IndentType[settings.indent_type];
  made.indent_width = Number(settings.indent_width);
  return made;
}

const check = process.argv.includes("--check");
const odd = [];
for (const name of readdirSync(plugin, { recursive: true }).filter((name) => name.endsWith(".lua")).sort()) {
  const path = join(plugin, name);
  const source = readFileSync(path, "utf8");
  const formatted = formatCode(source, config(), undefined, OutputVerification.Full);
  if (formatted === source) continue;
  odd.push(relative(process.cwd(), path));
  if (!check) writeFileSync(path, formatted);
}
for (const path of odd) console.log(check ? `not formatted: ${path}` : path);
if (check && odd.length > 0) {
  console.log("node tests/editors/neovim/format/format.mjs formats them");
  process.exitCode = 1;
}
