import { commands, type ExtensionContext, window, workspace } from "vscode";
import { Client } from "./client";
import { registerGraph } from "./graph";
import { registerSessionPages } from "./session";

let client: Client | undefined;

export async function activate(context: ExtensionContext): Promise<void> {
  const log = window.createOutputChannel("Crewlog", { log: true });
  client = new Client(log);
  const crew = client;
  context.subscriptions.push(log);
  registerSessionPages(context, crew);
  registerGraph(context, crew);
  const showState = () => void commands.executeCommand("setContext", "crewlog.state", crew.state);
  context.subscriptions.push(crew.onDidChangeState(showState));
  showState();
  context.subscriptions.push(
    commands.registerCommand("crewlog.server.restart", () => crew.restart()),
    commands.registerCommand("crewlog.server.showLog", () => log.show()),
    workspace.onDidGrantWorkspaceTrust(() => crew.restart()),
  );
  void crew.restart();
}

export async function deactivate(): Promise<void> {
  await client?.dispose();
}
