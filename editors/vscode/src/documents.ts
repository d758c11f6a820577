import { type Disposable, EventEmitter, languages, type TextDocumentContentProvider, Uri, window, workspace } from "vscode";
import type { Parts } from "./context";
import { explain } from "./errors";
import type { TaskTarget } from "./model/row";
import { taskText } from "./model/tasks";
import { transcriptText } from "./model/transcript";
import { line } from "./text";

const SCHEME = "crewlog";
/** Nobody tells of a transcript that grows: one that is on screen is read again this often. */
const LOOK_MS = 2000;
/** Lines are wrapped there, and nothing stands beside them: see package.json. */
const LANGUAGE = "crewlog-text";

/** Tasks and transcripts as documents to read: plain text, folded by indentation, searched and copied like any other. */
export class Documents implements TextDocumentContentProvider, Disposable {
  private readonly changed = new EventEmitter<Uri>();
  private readonly timer: NodeJS.Timeout;
  private readonly shown = new Map<string, string>();
  /** How many messages the transcripts had when they were read. */
  private readonly totals = new Map<string, number>();
  private readonly subscriptions: Disposable[];

  readonly onDidChange = this.changed.event;

  constructor(private readonly parts: Parts) {
    this.subscriptions = [
      workspace.registerTextDocumentContentProvider(SCHEME, this),
      parts.board.onDidChange(() => this.look("task")),
      parts.crew.onDidReconnect(() => this.look()),
      workspace.onDidCloseTextDocument(({ uri }) => {
        this.shown.delete(uri.toString());
        this.totals.delete(uri.toString());
      }),
    ];
    this.timer = setInterval(() => this.look("transcript"), LOOK_MS);
  }

  async showTask({ listId, id }: TaskTarget): Promise<void> {
    await this.show("task", [listId, id], `Task ${id}`);
  }

  async showTranscript(listId: string, agent: string): Promise<void> {
    await this.show("transcript", [listId, agent], `Transcript of ${agent}`);
  }

  async provideTextDocumentContent(uri: Uri): Promise<string> {
    const text = await this.text(uri);
    this.shown.set(uri.toString(), text);
    return text;
  }

  dispose(): void {
    clearInterval(this.timer);
    for (const subscription of this.subscriptions) subscription.dispose();
    this.changed.dispose();
  }

  private async show(kind: "task" | "transcript", query: [string, string], title: string): Promise<void> {
    // the name is only what the tab says; what is asked for stands in the query
    const uri = Uri.from({
      scheme: SCHEME,
      authority: kind,
      path: `/${line(title, 80).replace(/[/\\?#]/g, "_")}`,
      query: JSON.stringify(query),
    });
    const document = await this.parts.report.during(`Opening ${line(title, 80)}`, Promise.resolve(workspace.openTextDocument(uri)));
    await languages.setTextDocumentLanguage(document, LANGUAGE);
    await window.showTextDocument(document, { preview: true });
  }

  private async text(uri: Uri): Promise<string> {
    const [listId = "", id = ""] = JSON.parse(uri.query) as string[];
    try {
      if (uri.authority === "transcript") {
        const { messages, total } = await this.parts.crew.request("transcript/load", { listId, agent: id });
        this.totals.set(uri.toString(), total);
        if (total === 0) return `${line(id)} has no transcript yet. It appears here when there is one.\n`;
        return transcriptText(id, messages);
      }
      await this.parts.board.load(listId);
      const list = this.parts.board.list(listId);
      const task = list?.tasks?.get(id);
      if (list === undefined || list.tasks === undefined || task === undefined) return `Task ${id} is not there any more.\n`;
      return taskText(task, list.tasks, list, Date.now());
    } catch (error) {
      // a server that restarts does not take away what is read
      return this.shown.get(uri.toString()) ?? `${explain(error)}\n`;
    }
  }

  /** Reads anew what is on screen. */
  private look(kind?: "task" | "transcript"): void {
    for (const { document } of window.visibleTextEditors) {
      const { uri } = document;
      if (uri.scheme !== SCHEME || (kind !== undefined && uri.authority !== kind)) continue;
      void this.isStale(uri).then((stale) => {
        if (stale) this.changed.fire(uri);
      });
    }
  }

  private async isStale(uri: Uri): Promise<boolean> {
    const known = this.totals.get(uri.toString());
    if (known !== undefined && (await this.total(uri)) === known) return false; // its end is asked for, not all of it
    return (await this.text(uri)) !== this.shown.get(uri.toString());
  }

  /** How many messages a transcript has now; undefined where that cannot be told. */
  private async total(uri: Uri): Promise<number | undefined> {
    const [listId = "", agent = ""] = JSON.parse(uri.query) as string[];
    try {
      const { agents } = await this.parts.crew.request("transcript/list", { listId });
      return agents.find((found) => found.agent === agent)?.count;
    } catch {
      return undefined; // reading it says why
    }
  }
}
