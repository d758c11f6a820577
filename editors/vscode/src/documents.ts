import { type Disposable, EventEmitter, languages, type TextDocumentContentProvider, Uri, window, workspace } from "vscode";
import type { Parts } from "./context";
import { explain } from "./errors";
import type { TaskTarget } from "./model/row";
import { taskText } from "./model/tasks";
import { line } from "./text";

const SCHEME = "crewlog";
/** Lines are wrapped there, and nothing stands beside them: see package.json. */
const LANGUAGE = "crewlog-text";

/** Tasks as documents to read: plain text, folded by indentation, searched and copied like any other. */
export class Documents implements TextDocumentContentProvider, Disposable {
  private readonly changed = new EventEmitter<Uri>();
  private readonly shown = new Map<string, string>();
  private readonly subscriptions: Disposable[];

  readonly onDidChange = this.changed.event;

  constructor(private readonly parts: Parts) {
    this.subscriptions = [
      workspace.registerTextDocumentContentProvider(SCHEME, this),
      parts.board.onDidChange(() => this.look()),
      parts.crew.onDidReconnect(() => this.look()),
      workspace.onDidCloseTextDocument(({ uri }) => {
        this.shown.delete(uri.toString());
      }),
    ];
  }

  async showTask({ listId, id }: TaskTarget): Promise<void> {
    const title = `Task ${line(id, 80)}`;
    // the name is only what the tab says; what is asked for stands in the query
    const path = `/${title.replace(/[/\\?#]/g, "_")}`;
    const uri = Uri.from({ scheme: SCHEME, authority: "task", path, query: JSON.stringify([listId, id]) });
    const document = await this.parts.report.during(`Opening ${title}`, Promise.resolve(workspace.openTextDocument(uri)));
    await languages.setTextDocumentLanguage(document, LANGUAGE);
    await window.showTextDocument(document, { preview: true });
  }

  async provideTextDocumentContent(uri: Uri): Promise<string> {
    const text = await this.text(uri);
    this.shown.set(uri.toString(), text);
    return text;
  }

  dispose(): void {
    for (const subscription of this.subscriptions) subscription.dispose();
    this.changed.dispose();
  }

  private async text(uri: Uri): Promise<string> {
    const [listId = "", id = ""] = JSON.parse(uri.query) as string[];
    try {
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
  private look(): void {
    for (const { document } of window.visibleTextEditors) {
      const { uri } = document;
      if (uri.scheme !== SCHEME) continue;
      void this.isStale(uri).then((stale) => {
        if (stale) this.changed.fire(uri);
      });
    }
  }

  private async isStale(uri: Uri): Promise<boolean> {
    return (await this.text(uri)) !== this.shown.get(uri.toString());
  }
}
