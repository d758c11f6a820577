import { randomBytes } from "node:crypto";
import { commands, type ExtensionContext, env, ProgressLocation, Uri, ViewColumn, type WebviewPanel, window, workspace } from "vscode";
import type { Crew } from "../crew";
import { explain } from "../errors";
import { inert, line } from "../text";
import { type PageFeed, SessionFeed } from "./feed";
import { pageHtml } from "./html";
import type { FromPage, ToPage, TranscriptOf } from "./messages";
import { entryText } from "./rows";
import { TranscriptFeed } from "./transcript";

const VIEW_TYPE = "crewlog.session";
/** How often a transcript that is on screen is read again, in milliseconds: nobody tells when it grows. */
const LOOK_MS = 2000;

export interface SessionPages {
  /** Opens the session's page, or shows the one that is open. `title`: until the session itself says; `entryId`: where to scroll. */
  open(sessionId: string, title?: string, entryId?: string): void;
  /** Opens what a member of a team said and did, on a page of the same kind. */
  openTranscript(listId: string, agent: string): void;
}

/** The pages of sessions and transcripts, one for each that is open; they come back when the window is reloaded. */
export function registerSessionPages(context: ExtensionContext, crew: Crew): SessionPages {
  const sessions = new Map<string, SessionPage<SessionFeed>>();
  const transcripts = new Map<string, SessionPage<TranscriptFeed>>();
  const { extensionUri } = context;
  const newPanel = (title: string) => window.createWebviewPanel(VIEW_TYPE, tabTitle(title), ViewColumn.Active, options(extensionUri));

  const showSession = (panel: WebviewPanel, sessionId: string, entryId: string | null) => {
    const feedOf = (post: (message: ToPage) => void) =>
      new SessionFeed(crew, sessionId, post, (title) => {
        panel.title = tabTitle(title);
      });
    sessions.set(sessionId, new SessionPage(panel, crew, extensionUri, feedOf, sessionId, entryId, { sessionId }));
    panel.onDidDispose(() => sessions.delete(sessionId));
  };
  const showTranscript = (panel: WebviewPanel, { listId, agent }: TranscriptOf) => {
    const feedOf = (post: (message: ToPage) => void) => new TranscriptFeed(crew, listId, agent, post);
    const page = new SessionPage(panel, crew, extensionUri, feedOf, undefined, null, { transcript: { listId, agent } });
    transcripts.set(keyOf(listId, agent), page);
    const timer = setInterval(() => {
      if (panel.visible && crew.state === "ready") page.feed.look();
    }, LOOK_MS);
    panel.onDidDispose(() => {
      clearInterval(timer);
      transcripts.delete(keyOf(listId, agent));
    });
  };
  context.subscriptions.push(
    crew.onNotification("session/didChange", (change) => sessions.get(change.session.id)?.feed.didChange(change)),
    crew.onDidReconnect(() => {
      for (const page of [...sessions.values(), ...transcripts.values()]) page.feed.reconnected();
    }),
    window.registerWebviewPanelSerializer(VIEW_TYPE, {
      async deserializeWebviewPanel(panel: WebviewPanel, state: unknown) {
        const { sessionId, transcript } = (state ?? {}) as { sessionId?: unknown; transcript?: Partial<TranscriptOf> };
        const { listId, agent } = transcript ?? {};
        if (typeof listId === "string" && typeof agent === "string" && !transcripts.has(keyOf(listId, agent)))
          showTranscript(panel, { listId, agent });
        else if (typeof sessionId === "string" && sessionId !== "" && !sessions.has(sessionId)) showSession(panel, sessionId, null);
        // What it was of is shown in another panel already.
        else panel.dispose();
      },
    }),
  );
  return {
    open(sessionId, title, entryId) {
      const open = sessions.get(sessionId);
      if (open) return open.reveal(entryId);
      showSession(newPanel(title || sessionId), sessionId, entryId ?? null);
    },
    openTranscript(listId, agent) {
      const open = transcripts.get(keyOf(listId, agent));
      if (open) return open.reveal();
      showTranscript(newPanel(`Transcript of ${agent}`), { listId, agent });
    },
  };
}

function keyOf(listId: string, agent: string): string {
  return JSON.stringify([listId, agent]);
}

class SessionPage<F extends PageFeed> {
  readonly feed: F;

  /** `sessionId`: undefined for what is no session; `scrollTo`: an entry of it, null for its end. */
  constructor(
    private readonly panel: WebviewPanel,
    private readonly crew: Crew,
    extensionUri: Uri,
    feedOf: (post: (message: ToPage) => void) => F,
    private readonly sessionId: string | undefined,
    private scrollTo: string | null,
    target: Record<string, unknown>,
  ) {
    this.feed = feedOf((message) => void panel.webview.postMessage(message));
    panel.iconPath = {
      light: Uri.joinPath(extensionUri, "media", "session-light.svg"),
      dark: Uri.joinPath(extensionUri, "media", "session-dark.svg"),
    };
    panel.webview.options = options(extensionUri);
    panel.webview.onDidReceiveMessage((message: FromPage) => this.receive(message));
    panel.onDidDispose(() => void this.feed.dispose());
    panel.webview.html = pageHtml({
      script: panel.webview.asWebviewUri(Uri.joinPath(pagesFolder(extensionUri), "session.js")).toString(),
      style: panel.webview.asWebviewUri(Uri.joinPath(pagesFolder(extensionUri), "session.css")).toString(),
      styleSource: panel.webview.cspSource,
      nonce: randomBytes(16).toString("base64url"),
      target,
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
        if (sessionId === undefined) return;
        return void (await commands.executeCommand("crewlog.session.fork", { sessionId, entryId: message.entryId }));
      case "rewind":
        if (sessionId === undefined) return;
        return void (await commands.executeCommand("crewlog.session.rewind", { sessionId, entryId: message.entryId }));
      case "restore":
        if (sessionId !== undefined) await this.crew.request("session/restore", { sessionId });
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
