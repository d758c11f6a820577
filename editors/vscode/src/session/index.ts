import { randomBytes } from "node:crypto";
import { commands, type ExtensionContext, env, ProgressLocation, Uri, ViewColumn, type WebviewPanel, window, workspace } from "vscode";
import type { Crew } from "../crew";
import { explain } from "../errors";
import { inert, line } from "../text";
import { SessionFeed } from "./feed";
import { pageHtml } from "./html";
import type { FromPage } from "./messages";
import { entryText } from "./rows";

const VIEW_TYPE = "crewlog.session";

export interface SessionPages {
  /** Opens the session's page, or shows the one that is open. `title`: until the session itself says; `entryId`: where to scroll. */
  open(sessionId: string, title?: string, entryId?: string): void;
}

/** The pages of sessions, one for each that is open; they come back when the window is reloaded. */
export function registerSessionPages(context: ExtensionContext, crew: Crew): SessionPages {
  const pages = new Map<string, SessionPage>();
  const show = (panel: WebviewPanel, sessionId: string, entryId: string | null) => {
    const page = new SessionPage(panel, sessionId, crew, context.extensionUri, entryId);
    pages.set(sessionId, page);
    panel.onDidDispose(() => pages.delete(sessionId));
  };
  context.subscriptions.push(
    crew.onNotification("session/didChange", (change) => pages.get(change.session.id)?.feed.didChange(change)),
    crew.onDidReconnect(() => {
      for (const page of pages.values()) page.feed.reconnected();
    }),
    window.registerWebviewPanelSerializer(VIEW_TYPE, {
      async deserializeWebviewPanel(panel: WebviewPanel, state: unknown) {
        const sessionId = (state as { sessionId?: unknown } | undefined)?.sessionId;
        // A page that was closed before it had shown anything has nothing to come back to.
        if (typeof sessionId !== "string" || sessionId === "" || pages.has(sessionId)) return panel.dispose();
        show(panel, sessionId, null);
      },
    }),
  );
  return {
    open(sessionId, title, entryId) {
      const open = pages.get(sessionId);
      if (open) return open.reveal(entryId);
      const panel = window.createWebviewPanel(VIEW_TYPE, tabTitle(title || sessionId), ViewColumn.Active, options(context.extensionUri));
      show(panel, sessionId, entryId ?? null);
    },
  };
}

class SessionPage {
  readonly feed: SessionFeed;

  constructor(
    private readonly panel: WebviewPanel,
    private readonly sessionId: string,
    private readonly crew: Crew,
    extensionUri: Uri,
    private scrollTo: string | null,
  ) {
    this.feed = new SessionFeed(
      crew,
      sessionId,
      (message) => void panel.webview.postMessage(message),
      (title) => {
        panel.title = tabTitle(title);
      },
    );
    panel.webview.options = options(extensionUri);
    panel.webview.onDidReceiveMessage((message: FromPage) => this.receive(message));
    panel.onDidDispose(() => void this.feed.dispose());
    panel.webview.html = pageHtml({
      script: panel.webview.asWebviewUri(Uri.joinPath(pagesFolder(extensionUri), "session.js")).toString(),
      style: panel.webview.asWebviewUri(Uri.joinPath(pagesFolder(extensionUri), "session.css")).toString(),
      styleSource: panel.webview.cspSource,
      nonce: randomBytes(16).toString("base64url"),
    });
  }

  reveal(entryId?: string): void {
    this.panel.reveal();
    if (entryId) void this.feed.handle({ type: "ready", scrollTo: entryId });
  }

  private receive(message: FromPage): void {
    void this.act(message).catch((error: unknown) => window.showErrorMessage(inert(line(explain(error), 500))));
  }

  private async act(message: FromPage): Promise<void> {
    const { sessionId } = this;
    switch (message.type) {
      case "ready": {
        const scrollTo = this.scrollTo ?? message.scrollTo ?? null;
        this.scrollTo = null;
        return this.feed.handle({ ...message, scrollTo });
      }
      case "copyId":
        return env.clipboard.writeText(message.entryId);
      case "copyText":
        return env.clipboard.writeText(entryText(await this.feed.entry(message.entryId)));
      case "openWhole":
        return window.withProgress({ location: ProgressLocation.Window, title: "Loading the entry" }, async () => {
          const content = JSON.stringify(await this.feed.entry(message.entryId), null, 2);
          await window.showTextDocument(await workspace.openTextDocument({ content, language: "json" }), ViewColumn.Beside);
        });
      case "fork":
        return void (await commands.executeCommand("crewlog.session.fork", { sessionId, entryId: message.entryId }));
      case "rewind":
        return void (await commands.executeCommand("crewlog.session.rewind", { sessionId, entryId: message.entryId }));
      case "restore":
        await this.crew.request("session/restore", { sessionId });
        return this.feed.handle({ type: "retry" });
      default:
        return this.feed.handle(message);
    }
  }
}

function pagesFolder(extensionUri: Uri): Uri {
  return Uri.joinPath(extensionUri, "dist", "pages");
}

function options(extensionUri: Uri) {
  return { enableScripts: true, enableCommandUris: false, enableForms: false, localResourceRoots: [pagesFolder(extensionUri)] };
}

function tabTitle(title: string): string {
  return line(title, 60) || "Session";
}
