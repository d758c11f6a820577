// A real VS Code (code-server) with the packaged extension in it, and a browser that looks at it.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

// the extension's own development dependency
const { chromium } = createRequire(new URL("../../../../editors/vscode/package.json", import.meta.url))("playwright-core");

const HERE = new URL(".", import.meta.url).pathname;
const { VSCODE_SERVER, CHROMIUM, VSIX, ARTIFACTS, CREWLOG } = process.env;
/** The machine may be busy with other things: conditions are waited for, this long at most. */
export const PATIENCE_MS = Number(process.env.PATIENCE_MS ?? 120_000);

const BROWSER = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
];

let shots = 0;

/** One VS Code server and one browser, for all windows of a test file. */
export class VSCode {
  /** `settings`: the user's own, beside those that keep VS Code quiet. `trust`: whether workspaces must be trusted. */
  static async start({ home, settings = {}, trust = false, path }) {
    const folder = mkdtempSync(join(tmpdir(), "crewlog-vscode-"));
    const user = join(folder, "user");
    const own = { "security.workspace.trust.enabled": trust, "crewlog.server.path": CREWLOG, "crewlog.server.home": home, "crewlog.owner": "you" };
    writeSettings(user, { ...own, ...settings });
    writeFileSync(join(folder, "config.yaml"), "auth: none\n");
    const port = await freePort();
    const base = ["--config", join(folder, "config.yaml"), "--user-data-dir", user, "--extensions-dir", join(folder, "extensions")];
    const entry = join(VSCODE_SERVER, "out/node/entry.js");
    const env = {
      ...process.env,
      PATH: path ?? process.env.PATH,
      HOME: folder,
      XDG_CONFIG_HOME: join(folder, "config"),
      XDG_DATA_HOME: join(folder, "data"),
      EXTENSIONS_GALLERY: '{"serviceUrl":"http://127.0.0.1:9/none","itemUrl":"http://127.0.0.1:9/none"}',
      CS_DISABLE_GETTING_STARTED_OVERRIDE: "1",
      TZ: "UTC",
    };
    for (const name of ["CREWLOG_HOME", "NODE_OPTIONS", "NODE_TEST_CONTEXT"]) delete env[name];
    const installed = spawnSync(process.execPath, [entry, ...base, "--install-extension", VSIX], { env, encoding: "utf8" });
    if (installed.status !== 0) throw new Error(`the extension was not installed: ${installed.stdout}${installed.stderr}`);
    const args = [entry, ...base, "--bind-addr", `127.0.0.1:${port}`, "--auth", "none", "--disable-telemetry", "--disable-update-check"];
    const server = spawn(process.execPath, trust ? args : [...args, "--disable-workspace-trust"], { env, stdio: "ignore" });
    const url = `http://127.0.0.1:${port}`;
    await until("code-server answers", async () => (await fetch(`${url}/healthz`)).ok);
    const browser = await chromium.launch({ executablePath: CHROMIUM, args: BROWSER });
    return new VSCode(folder, server, url, browser, own);
  }

  constructor(folder, server, url, browser, own) {
    Object.assign(this, { folder, server, url, browser, own });
  }

  /** The user changes settings, from what they were at the start. */
  change(settings) {
    writeSettings(join(this.folder, "user"), { ...this.own, ...settings });
  }

  /** A window on a folder or a .code-workspace file. `shows`: whether to wait for the Tasks view to have come up. */
  async open(path, { size = { width: 1280, height: 900 } } = {}) {
    const context = await this.browser.newContext({ viewport: size, permissions: ["clipboard-read", "clipboard-write"], timezoneId: "UTC" });
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    const kind = path.endsWith(".code-workspace") ? "workspace" : "folder";
    await page.goto(`${this.url}/?${kind}=${path}`);
    await page.waitForSelector(".monaco-workbench .activitybar");
    return new Window(page, context);
  }

  /** The process ids of the crewlog servers that its windows have started. */
  servers() {
    const found = spawnSync("ps", ["-eo", "pid=,args="], { encoding: "utf8" }).stdout.split("\n");
    return found
      .filter((line) => line.includes("crewlog serve"))
      .map((line) => Number.parseInt(line, 10))
      .filter((pid) => existsSync(`/proc/${pid}/environ`) && readFileSync(`/proc/${pid}/environ`, "utf8").includes(`HOME=${this.folder}\0`));
  }

  async stop() {
    await this.browser.close();
    const ended = new Promise((resolve) => this.server.once("exit", resolve));
    this.server.kill("SIGTERM");
    await ended;
    await removed(this.folder);
  }
}

function writeSettings(user, settings) {
  const quiet = JSON.parse(readFileSync(join(HERE, "settings.json"), "utf8"));
  for (const kind of ["User", "Machine"]) {
    mkdirSync(join(user, kind), { recursive: true });
    writeFileSync(join(user, kind, "settings.json"), JSON.stringify({ ...quiet, ...settings }));
  }
}

/** The extension host writes its last files while it ends. */
async function removed(folder) {
  await until("the scratch folder is gone", () => {
    rmSync(folder, { recursive: true, force: true });
    return true;
  });
}

export class Window {
  constructor(page, context) {
    this.page = page;
    this.context = context;
  }

  async close() {
    await this.context.close();
  }

  /** Opens the Crewlog side bar. */
  async crewlog() {
    const icon = this.page.locator('.activitybar .action-item a.action-label[aria-label^="Crewlog"]');
    await icon.waitFor();
    if ((await icon.getAttribute("aria-expanded")) !== "true" && !(await this.pane("Tasks").isVisible())) await icon.click();
    await this.pane("Tasks").waitFor();
  }

  pane(title) {
    return this.page.locator(`.sidebar .pane:has(.pane-header[aria-label^="${title}"])`);
  }

  rows(title) {
    return this.pane(title).locator(".monaco-list-row");
  }

  row(title, text) {
    return this.rows(title).filter({ hasText: text }).first();
  }

  /** Waits for a row that holds the text. */
  async see(title, text) {
    await this.row(title, text).waitFor();
    return this.row(title, text);
  }

  async gone(title, text) {
    await until(`no row of ${title} says ${text}`, async () => (await this.rows(title).filter({ hasText: text }).count()) === 0);
  }

  async texts(title) {
    return (await this.rows(title).allInnerTexts()).map((text) => text.replace(/\s+/g, " ").trim());
  }

  async expand(title, text) {
    const row = await this.see(title, text);
    if ((await row.getAttribute("aria-expanded")) === "false") await row.locator(".monaco-tl-twistie").click();
    await until(`${text} is expanded`, async () => (await this.row(title, text).getAttribute("aria-expanded")) === "true");
  }

  /** Makes one view as large as can be, the others closed. */
  async only(...titles) {
    for (const title of ["Tasks", "Sessions", "Plans", "Team"]) {
      const header = this.pane(title).locator(".pane-header");
      if (((await header.getAttribute("aria-expanded")) === "true") !== titles.includes(title)) await header.locator("h3").click();
    }
  }

  /** Runs a command of a row's context menu. */
  async menu(title, text, item) {
    const row = await this.see(title, text);
    await row.click({ button: "right", position: { x: 60, y: 10 } });
    const label = this.page.locator(".monaco-menu .action-label").filter({ hasText: item }).first();
    await label.waitFor();
    await until(`the menu's "${item}" is taken`, async () => {
      await label.click({ timeout: 2000 });
      await label.waitFor({ state: "hidden", timeout: 2000 }); // a menu does not listen in its first moments: then once more
      return true;
    });
  }

  /** Opens the command palette with a text. A part that is still coming up may take the focus, and with it the palette, away: then once more. */
  async palette(text) {
    const input = this.page.locator(".quick-input-widget:visible input[type=text]");
    await until("the palette takes a text", async () => {
      if (!(await input.isVisible())) await this.page.keyboard.press("F1");
      await input.fill(`>${text}`, { timeout: 1000 });
      return (await input.inputValue({ timeout: 1000 })) === `>${text}`;
    });
  }

  /** Runs a command by the palette. */
  async command(title) {
    const item = this.page.locator(".quick-input-list .monaco-list-row").filter({ hasText: title }).first();
    await until(`${title} is run`, async () => {
      await this.palette(title);
      await item.click({ timeout: 3000 });
      return true;
    });
  }

  /** Whether the palette has a command. */
  async hasCommand(title) {
    await this.palette(title);
    await until("the palette has filtered", async () => (await this.page.locator(".quick-input-list .monaco-list-row").count()) < 20);
    const found = await this.page.locator(".quick-input-list .monaco-list-row").filter({ hasText: title }).count();
    await this.page.keyboard.press("Escape");
    return found > 0;
  }

  /** Waits until the input or pick that is open is the one whose title, placeholder or prompt says `question`. */
  async asked(question) {
    const widget = this.page.locator(".quick-input-widget:visible");
    await until(`"${question}" is asked`, async () => {
      const input = widget.locator("input[type=text]");
      const said = [await widget.locator(".quick-input-title").innerText({ timeout: 1000 }), await input.getAttribute("placeholder", { timeout: 1000 })];
      said.push(await widget.locator(".quick-input-message").innerText({ timeout: 1000 }), await input.inputValue({ timeout: 1000 }));
      return said.join("\n").includes(question);
    });
    return widget;
  }

  /** Types an answer to the question, and presses Enter. */
  async answer(question, text) {
    const input = (await this.asked(question)).locator("input[type=text]");
    await until("the text stands there", async () => {
      await input.fill(text);
      return (await input.inputValue()) === text;
    });
    await this.page.keyboard.press("Enter");
  }

  /** Picks what holds the text among the answers to the question. */
  async pick(question, text) {
    const widget = await this.asked(question);
    await widget.locator(".monaco-list-row").filter({ hasText: text }).first().click();
  }

  /** A button of a modal question. */
  async confirm(button) {
    await this.page.locator(".monaco-dialog-box .monaco-button").filter({ hasText: button }).first().click();
  }

  notification(text) {
    return this.page.locator(".notification-list-item, .notifications-toasts .notification-toast").filter({ hasText: text }).first();
  }

  async pressNotification(text, button) {
    await this.notification(text).waitFor();
    await this.notification(text).hover();
    await this.notification(text).locator(".monaco-button").filter({ hasText: button }).first().click();
  }

  async statusBar() {
    return this.page.locator('.statusbar-item[id*="crewlog"]').first();
  }

  /** What the text editors show, with the blanks that VS Code draws as no-break ones made plain. */
  async editorText() {
    return (await this.page.locator(".editor-instance .view-lines").allInnerTexts()).join("\n").replaceAll("\u00a0", " ");
  }

  /** Waits for something in a page (a webview, which is a frame in a frame); gives its locator. */
  async inPage(what, find) {
    let found;
    await until(what, async () => {
      for (const frame of this.page.frames()) {
        const locator = find(frame);
        if (frame !== this.page.mainFrame() && (await locator.isVisible())) found = locator;
      }
      return found !== undefined;
    });
    return found;
  }

  /**
   * Waits until the page that is being opened shows the text and has the focus. A page takes the focus some time after its tab is there, and
   * closes with it whatever is asked meanwhile.
   */
  async opened(text) {
    await this.inPage(`the page says ${text}`, (frame) => frame.getByText(text).first());
    await until(`the page that says ${text} has the focus`, () => this.page.evaluate(() => document.activeElement?.matches("iframe.webview.ready")));
  }

  /** For `afterEach`: keeps a picture of what a test that failed has left. */
  async keep(test) {
    if (!test.passed) await this.shot(`FAILED-${test.name.replace(/[^a-z0-9]+/gi, "-")}`, { pointing: true });
  }

  /** Keeps a picture of the window, numbered in order. `pointing`: whether what the mouse points at belongs to it. */
  async shot(name, { pointing = false } = {}) {
    if (!ARTIFACTS) return;
    mkdirSync(ARTIFACTS, { recursive: true });
    if (!pointing) await this.page.mouse.move(700, 895);
    const suite = basename(process.argv[1] ?? "", ".test.mjs");
    await this.page.screenshot({ path: join(ARTIFACTS, `${suite}-${String(++shots).padStart(2, "0")}-${name}.png`) });
  }
}

/** Waits until `condition` holds. Throws with `what` when it does not in time. */
export async function until(what, condition, patience = PATIENCE_MS) {
  const end = Date.now() + patience;
  for (let last; ; ) {
    try {
      if (await condition()) return;
    } catch (error) {
      last = error;
    }
    if (Date.now() > end) throw new Error(`not in ${patience / 1000} s: ${what}${last ? ` (${last.message})` : ""}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}
