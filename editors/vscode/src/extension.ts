import { commands, type ExtensionContext, window, workspace } from "vscode";
import { Client } from "./client";
import { registerCommands } from "./commands";
import type { Parts } from "./context";
import { registerGraph } from "./graph";
import { Reporter } from "./report";
import { registerSessionPages } from "./session";
import { settings } from "./settings";
import { registerStatusBar } from "./statusBar";
import { Board } from "./stores/board";
import { Plans } from "./stores/plans";
import { makeScope, type Scope } from "./stores/scope";
import { Sessions } from "./stores/sessions";
import { inert } from "./text";
import { registerViews } from "./views";

/** Settings that a running server does not learn of. */
const OF_THE_SERVER = ["crewlog.server", "crewlog.allProjects"];

let client: Client | undefined;

export function activate(context: ExtensionContext): void {
  const log = window.createOutputChannel("Crewlog", { log: true });
  const report = new Reporter(log);
  const crew = new Client(log);
  client = crew;
  const board = new Board(crew, scope, report.viewFailed);
  const sessions = new Sessions(crew, scope, report.viewFailed);
  const plans = new Plans(crew, report.viewFailed);
  board.choose(context.workspaceState.get<string>("activeList"));
  const showState = () => void commands.executeCommand("setContext", "crewlog.state", crew.state);
  context.subscriptions.push(
    log,
    board,
    sessions,
    plans,
    crew.onDidChangeState(showState),
    crew.onDidGiveUp((reason) => void gaveUp(reason, crew)),
    commands.registerCommand("crewlog.server.restart", () => report.during("Restarting the crewlog server", crew.restart())),
    commands.registerCommand("crewlog.server.showLog", () => log.show()),
    workspace.onDidGrantWorkspaceTrust(() => {
      if (crew.state === "missing") void crew.restart(); // a Python environment of the workspace may be used now
    }),
    workspace.onDidChangeWorkspaceFolders(() => crew.restart()),
    workspace.onDidChangeConfiguration((event) => {
      if (OF_THE_SERVER.some((section) => event.affectsConfiguration(section))) void crew.restart();
    }),
  );
  const pages = registerSessionPages(context, crew);
  const graphs = registerGraph(context, crew);
  const parts: Parts = { context, crew, board, sessions, plans, report, pages, graphs };
  registerCommands(parts, registerViews(parts));
  registerStatusBar(parts);
  showState();
  void crew.restart();
}

export async function deactivate(): Promise<void> {
  await client?.dispose();
}

let current: Scope | undefined;

/** The projects of this window: those of its folders, each of which is one. */
function scope(): Scope {
  const folders = (workspace.workspaceFolders ?? []).filter(({ uri }) => uri.scheme === "file").map(({ uri }) => uri.fsPath);
  const all = settings().allProjects;
  // asked for at each change that the server tells: links are looked up once
  if (current === undefined || current.all !== all || current.folders.join("\n") !== folders.join("\n")) current = makeScope(folders, all);
  return current;
}

async function gaveUp(reason: string, crew: Client): Promise<void> {
  const buttons =
    crew.state === "missing" ? (["Set Path…", "Open Settings", "Try Again"] as const) : (["Restart Server", "Show Log"] as const);
  switch (await window.showErrorMessage(inert(reason), ...buttons)) {
    case "Set Path…":
      await commands.executeCommand("crewlog.server.setPath");
      break;
    case "Open Settings":
      await commands.executeCommand("workbench.action.openSettings", "crewlog.server.path");
      break;
    case "Try Again":
    case "Restart Server":
      await commands.executeCommand("crewlog.server.restart");
      break;
    case "Show Log":
      await commands.executeCommand("crewlog.server.showLog");
      break;
  }
}
