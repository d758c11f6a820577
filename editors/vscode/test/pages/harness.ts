/**
 * A page of the extension in a real browser, fed by a real `crewlog serve`: only VS Code's own part, the frame around the page, is played.
 * The browser runs without a network; the page comes under the same policy as in VS Code, so that what it would not be allowed to load
 * there fails here too.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";
import {
  createMessageConnection,
  type MessageConnection,
  ResponseError,
  StreamMessageReader,
  StreamMessageWriter,
} from "vscode-jsonrpc/node";
import { fromReply } from "../../src/errors";
import type { Methods, Notifications } from "../../src/protocol";

export const CHROMIUM = process.env["CREWLOG_CHROMIUM"] ?? "/usr/bin/chromium";
/** Where pictures of the pages are kept; git does not see it. */
export const SCREENSHOTS = process.env["CREWLOG_SCREENSHOTS"] ?? join("..", "..", "artifacts", "vscode-pages");
const SERVER = process.env["CREWLOG_SERVER"] ?? "crewlog";
const ORIGIN = "http://page.test";

/** A server on a home, spoken to as the extension does. */
export class Server {
  private constructor(
    private readonly process: ChildProcess,
    private readonly connection: MessageConnection,
  ) {}

  static async start(home: string, cwd: string): Promise<Server> {
    const child = spawn(SERVER, ["serve"], { stdio: ["pipe", "pipe", "inherit"] });
    await new Promise((resolve, reject) => {
      child.once("spawn", resolve);
      child.once("error", () =>
        reject(new Error(`${SERVER} does not start: install the server (pip install -e .), or name it in CREWLOG_SERVER`)),
      );
    });
    if (!child.stdout || !child.stdin) throw new Error("no pipes to the server");
    const connection = createMessageConnection(new StreamMessageReader(child.stdout), new StreamMessageWriter(child.stdin));
    connection.listen();
    await connection.sendRequest("initialize", {
      processId: process.pid,
      rootUri: null,
      capabilities: {},
      initializationOptions: { home, cwd, durability: "process", subscribe: {} },
    });
    await connection.sendNotification("initialized", {});
    return new Server(child, connection);
  }

  async request<M extends keyof Methods>(method: M, params: Methods[M]["params"]): Promise<Methods[M]["result"]> {
    try {
      return await this.connection.sendRequest(method, params);
    } catch (error) {
      if (error instanceof ResponseError) throw fromReply(error.code, error.message, error.data) ?? error;
      throw error;
    }
  }

  private readonly handlers = new Map<string, ((params: Notifications[keyof Notifications]) => void)[]>();

  /** A connection takes one handler for a notification; several pages may want to be told. */
  on<N extends keyof Notifications>(method: N, handler: (params: Notifications[N]) => void): void {
    const handlers = this.handlers.get(method) ?? [];
    this.handlers.set(method, handlers);
    handlers.push(handler as (params: Notifications[keyof Notifications]) => void);
    this.connection.onNotification(method, (params: Notifications[N]) => {
      for (const each of handlers) each(params);
    });
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    await this.connection.sendRequest("shutdown");
    await this.connection.sendNotification("exit");
    await ended;
    this.connection.dispose();
  }

  /** As a crash would. */
  async kill(): Promise<void> {
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.kill("SIGKILL");
    await ended;
    this.connection.dispose();
  }
}

export async function startBrowser(): Promise<Browser> {
  if (!existsSync(CHROMIUM)) throw new Error(`no browser at ${CHROMIUM}: install Chromium, or name it in CREWLOG_CHROMIUM`);
  const rules = "MAP * ~NOTFOUND";
  const args = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ];
  return chromium.launch({ executablePath: CHROMIUM, args: [...args, `--host-resolver-rules=${rules}`] });
}

export type Theme = "light" | "dark" | "hc" | "hc-light";
export const ALL_THEMES: readonly Theme[] = ["light", "dark", "hc", "hc-light"];

export interface Frame {
  page: Page;
  post(message: unknown): Promise<void>;
  /** What the page kept with `setState`. */
  state(): Promise<unknown>;
  /** Requests that left the page, errors and refusals of its policy: there shall be none. */
  complaints: string[];
  screenshot(name: string): Promise<void>;
}

/** Opens a page as a webview would. `receive`: gets what it posts. */
export async function openFrame(
  browser: Browser,
  options: { html: string; folder: string; theme?: Theme; state?: unknown; width?: number; height?: number; receive(message: never): void },
): Promise<Frame> {
  const context = await browser.newContext({
    viewport: { width: options.width ?? 1000, height: options.height ?? 720 },
    deviceScaleFactor: 1,
  });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(`console: ${message.text()}`);
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(`${ORIGIN}/`) && !request.url().startsWith("data:")) complaints.push(`request: ${request.url()}`);
  });
  page.on("popup", (popup) => complaints.push(`popup: ${popup.url()}`));
  page.on("dialog", (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.route("**/*", (route) => {
    const path = new URL(route.request().url()).pathname;
    if (path === "/") return route.fulfill({ contentType: "text/html", body: options.html });
    const file = join(options.folder, path);
    if (!existsSync(file)) return route.fulfill({ status: 404 });
    return route.fulfill({ contentType: path.endsWith(".css") ? "text/css" : "text/javascript", body: readFileSync(file) });
  });
  await page.exposeFunction("toHost", (message: never) => options.receive(message));
  await page.addInitScript(
    ({ state, variables, kind }) => {
      let kept = state;
      const frame = window as unknown as Record<string, unknown>;
      frame["hostState"] = () => kept;
      frame["acquireVsCodeApi"] = () => ({
        postMessage: (message: unknown) => void (frame["toHost"] as (message: unknown) => void)(message),
        getState: () => kept,
        setState: (next: unknown) => {
          kept = next;
        },
      });
      document.addEventListener("DOMContentLoaded", () => {
        for (const [name, value] of Object.entries(variables)) document.documentElement.style.setProperty(name, value);
        document.body.classList.add(...kind.split(" "));
      });
    },
    { state: options.state, variables: THEMES[options.theme ?? "dark"], kind: CLASSES[options.theme ?? "dark"] },
  );
  await page.goto(`${ORIGIN}/`);
  return {
    page,
    complaints,
    post: (message) => page.evaluate((data) => window.postMessage(data, "*"), message),
    state: () => page.evaluate(() => (window as unknown as { hostState(): unknown }).hostState()),
    async screenshot(name) {
      mkdirSync(SCREENSHOTS, { recursive: true });
      await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`) });
    },
  };
}

export const SOURCES = { styleSource: ORIGIN, nonce: "bm9uY2U" };

/** A folder that is gone after the tests. */
export function scratch(): { path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), "crewlog-page-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** Waits until it holds. The machine may be busy: what is waited for is a condition, never a time. */
export async function until(what: string, holds: () => Promise<boolean> | boolean, within = 60_000): Promise<void> {
  const end = Date.now() + within;
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`waited in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

const CLASSES: Record<Theme, string> = {
  light: "vscode-light",
  dark: "vscode-dark",
  hc: "vscode-high-contrast",
  "hc-light": "vscode-high-contrast-light vscode-high-contrast",
};

/** The variables that the pages use, as VS Code's Light Modern, Dark Modern and the two of High Contrast set them. */
const FONTS = {
  "--vscode-font-family": "DejaVu Sans, sans-serif",
  "--vscode-font-size": "13px",
  "--vscode-editor-font-family": "DejaVu Sans Mono, monospace",
};
const THEMES: Record<Theme, Record<string, string>> = {
  light: {
    ...FONTS,
    "--vscode-foreground": "#3b3b3b",
    "--vscode-editor-foreground": "#3b3b3b",
    "--vscode-editor-background": "#ffffff",
    "--vscode-descriptionForeground": "#616161",
    "--vscode-editorWidget-background": "#f8f8f8",
    "--vscode-widget-border": "#e5e5e5",
    "--vscode-panel-border": "#e5e5e5",
    "--vscode-focusBorder": "#005fb8",
    "--vscode-textLink-foreground": "#005fb8",
    "--vscode-textCodeBlock-background": "#f2f2f2",
    "--vscode-button-background": "#005fb8",
    "--vscode-button-foreground": "#ffffff",
    "--vscode-button-hoverBackground": "#0258a8",
    "--vscode-input-background": "#ffffff",
    "--vscode-input-foreground": "#3b3b3b",
    "--vscode-input-border": "#cecece",
    "--vscode-dropdown-background": "#ffffff",
    "--vscode-dropdown-foreground": "#3b3b3b",
    "--vscode-dropdown-border": "#cecece",
    "--vscode-errorForeground": "#c72e0f",
    "--vscode-editorWarning-foreground": "#895503",
    "--vscode-charts-blue": "#0063d3",
    "--vscode-charts-purple": "#652d90",
    "--vscode-charts-yellow": "#895503",
    "--vscode-charts-green": "#388a34",
    "--vscode-testing-iconPassed": "#388a34",
    "--vscode-list-hoverBackground": "#f2f2f2",
    "--vscode-editor-findMatchBackground": "#a8ac94",
    "--vscode-editor-findMatchHighlightBackground": "#ea5c0055",
    "--vscode-inputValidation-warningBackground": "#f6f5d2",
  },
  dark: {
    ...FONTS,
    "--vscode-foreground": "#cccccc",
    "--vscode-editor-foreground": "#cccccc",
    "--vscode-editor-background": "#1f1f1f",
    "--vscode-descriptionForeground": "#9d9d9d",
    "--vscode-editorWidget-background": "#202020",
    "--vscode-widget-border": "#313131",
    "--vscode-panel-border": "#2b2b2b",
    "--vscode-focusBorder": "#0078d4",
    "--vscode-textLink-foreground": "#4daafc",
    "--vscode-textCodeBlock-background": "#2b2b2b",
    "--vscode-button-background": "#0078d4",
    "--vscode-button-foreground": "#ffffff",
    "--vscode-button-hoverBackground": "#026ec1",
    "--vscode-input-background": "#313131",
    "--vscode-input-foreground": "#cccccc",
    "--vscode-input-border": "#3c3c3c",
    "--vscode-dropdown-background": "#313131",
    "--vscode-dropdown-foreground": "#cccccc",
    "--vscode-dropdown-border": "#3c3c3c",
    "--vscode-errorForeground": "#f85149",
    "--vscode-editorWarning-foreground": "#cca700",
    "--vscode-charts-blue": "#3794ff",
    "--vscode-charts-purple": "#b180d7",
    "--vscode-charts-yellow": "#cca700",
    "--vscode-charts-green": "#89d185",
    "--vscode-testing-iconPassed": "#73c991",
    "--vscode-list-hoverBackground": "#2a2d2e",
    "--vscode-editor-findMatchBackground": "#9e6a03",
    "--vscode-editor-findMatchHighlightBackground": "#ea5c0055",
    "--vscode-inputValidation-warningBackground": "#352a05",
  },
  hc: {
    ...FONTS,
    "--vscode-foreground": "#ffffff",
    "--vscode-editor-foreground": "#ffffff",
    "--vscode-editor-background": "#000000",
    "--vscode-descriptionForeground": "#ffffffb3",
    "--vscode-editorWidget-background": "#0c141f",
    "--vscode-contrastBorder": "#6fc3df",
    "--vscode-focusBorder": "#f38518",
    "--vscode-textLink-foreground": "#21a6ff",
    "--vscode-textCodeBlock-background": "#000000",
    "--vscode-button-background": "#000000",
    "--vscode-button-foreground": "#ffffff",
    "--vscode-button-border": "#6fc3df",
    "--vscode-input-background": "#000000",
    "--vscode-input-foreground": "#ffffff",
    "--vscode-input-border": "#6fc3df",
    "--vscode-dropdown-background": "#000000",
    "--vscode-dropdown-foreground": "#ffffff",
    "--vscode-dropdown-border": "#6fc3df",
    "--vscode-errorForeground": "#f48771",
    "--vscode-editorWarning-foreground": "#ffd370",
    "--vscode-charts-blue": "#3794ff",
    "--vscode-charts-purple": "#b180d7",
    "--vscode-charts-yellow": "#ffd370",
    "--vscode-charts-green": "#89d185",
    "--vscode-testing-iconPassed": "#73c991",
    "--vscode-editor-findMatchBackground": "#d3992a",
    "--vscode-editor-findMatchHighlightBackground": "#ffffff40",
    "--vscode-inputValidation-warningBackground": "#000000",
  },
  "hc-light": {
    ...FONTS,
    "--vscode-foreground": "#292929",
    "--vscode-editor-foreground": "#292929",
    "--vscode-editor-background": "#ffffff",
    "--vscode-descriptionForeground": "#292929b3",
    "--vscode-editorWidget-background": "#ffffff",
    "--vscode-contrastBorder": "#0f4a85",
    "--vscode-focusBorder": "#006bbd",
    "--vscode-textLink-foreground": "#0f4a85",
    "--vscode-textCodeBlock-background": "#f2f2f2",
    "--vscode-button-background": "#0f4a85",
    "--vscode-button-foreground": "#ffffff",
    "--vscode-button-border": "#0f4a85",
    "--vscode-input-background": "#ffffff",
    "--vscode-input-foreground": "#292929",
    "--vscode-input-border": "#0f4a85",
    "--vscode-dropdown-background": "#ffffff",
    "--vscode-dropdown-foreground": "#292929",
    "--vscode-dropdown-border": "#0f4a85",
    "--vscode-errorForeground": "#b5200d",
    "--vscode-editorWarning-foreground": "#895503",
    "--vscode-charts-blue": "#1a85ff",
    "--vscode-charts-purple": "#652d90",
    "--vscode-charts-yellow": "#895503",
    "--vscode-charts-green": "#374e06",
    "--vscode-testing-iconPassed": "#007100",
    "--vscode-editor-findMatchHighlightBackground": "#ffffff00",
    "--vscode-inputValidation-warningBackground": "#ffffff",
  },
};
