import { randomBytes } from "node:crypto";
import { commands, type ExtensionContext, Uri, ViewColumn, type WebviewPanel, window } from "vscode";
import type { Crew } from "../crew";
import { explain } from "../errors";
import { inert, line } from "../text";
import { GraphFeed } from "./feed";
import { graphHtml } from "./html";
import type { FromGraph, GraphState } from "./messages";

const VIEW_TYPE = "crewlog.graph";

export interface Graphs {
  /** Opens the dependency graph of a task list, or shows the one that is open. */
  open(listId: string, title?: string): void;
}

/** The graphs of task lists, one for each that is open; they come back when the window is reloaded. */
export function registerGraph(context: ExtensionContext, crew: Crew): Graphs {
  const pages = new Map<string, { panel: WebviewPanel; feed: GraphFeed }>();
  const show = (panel: WebviewPanel, listId: string, title: string) => {
    const feed = new GraphFeed(
      crew,
      listId,
      title,
      (message) => void panel.webview.postMessage(message),
      (renamed) => {
        panel.title = tabTitle(renamed);
      },
    );
    pages.set(listId, { panel, feed });
    panel.iconPath = {
      light: Uri.joinPath(context.extensionUri, "media", "graph-light.svg"),
      dark: Uri.joinPath(context.extensionUri, "media", "graph-dark.svg"),
    };
    panel.webview.options = options(context.extensionUri);
    panel.webview.onDidReceiveMessage((message: FromGraph) => {
      const done =
        message.type === "open" ? commands.executeCommand("crewlog.task.open", { listId, id: message.id }) : feed.handle(message);
      void Promise.resolve(done).catch((error: unknown) => window.showErrorMessage(inert(line(explain(error), 500))));
    });
    panel.onDidDispose(() => {
      pages.delete(listId);
      void feed.dispose();
    });
    const source = (name: string) => panel.webview.asWebviewUri(Uri.joinPath(pagesFolder(context.extensionUri), name)).toString();
    panel.webview.html = graphHtml({
      script: source("graph.js"),
      style: source("graph.css"),
      styleSource: panel.webview.cspSource,
      nonce: randomBytes(16).toString("base64url"),
      target: { listId, title: title.slice(0, 200) },
    });
  };
  context.subscriptions.push(
    crew.onNotification("task/didChange", (change) => pages.get(change.listId)?.feed.didChange(change)),
    crew.onNotification("session/didChange", (change) => pages.get(change.session.id)?.feed.sessionDidChange(change)),
    crew.onDidReconnect(() => {
      for (const { feed } of pages.values()) void feed.reconnected();
    }),
    window.registerWebviewPanelSerializer(VIEW_TYPE, {
      async deserializeWebviewPanel(panel: WebviewPanel, state: unknown) {
        const { listId, title } = (state ?? {}) as Partial<GraphState>;
        // What it was of is shown in another panel already.
        if (typeof listId !== "string" || listId === "" || pages.has(listId)) return panel.dispose();
        show(panel, listId, typeof title === "string" ? title : "");
      },
    }),
  );
  return {
    open(listId, title) {
      const open = pages.get(listId);
      if (open) return open.panel.reveal();
      const panel = window.createWebviewPanel(VIEW_TYPE, tabTitle(title ?? ""), ViewColumn.Active, {
        ...options(context.extensionUri),
        enableFindWidget: true,
      });
      show(panel, listId, title ?? "");
    },
  };
}

function pagesFolder(extensionUri: Uri): Uri {
  return Uri.joinPath(extensionUri, "dist", "pages");
}

function options(extensionUri: Uri) {
  return { enableScripts: true, enableCommandUris: false, enableForms: false, localResourceRoots: [pagesFolder(extensionUri)] };
}

function tabTitle(title: string): string {
  const shown = line(title, 60);
  return shown ? `Graph: ${shown}` : "Dependency Graph";
}
