import { commands, type Disposable, type QuickPickItem, Uri, window, workspace } from "vscode";
import type { Parts } from "../context";
import { hitItem, sessionTitle } from "../model/sessions";
import { age } from "../model/time";
import type { Message, SearchHit, SessionInfo } from "../protocol";
import { count, inert, line } from "../text";
import type { Views } from "../views";
import { callOf, pickSession, question } from "./pick";

const HITS = 50;
/** Typing is not searched for letter by letter. */
const PAUSE_MS = 150;
const DELETED = "deletedSessions";

interface DeletedSession {
  id: string;
  title: string;
}

export function registerSessionCommands(parts: Parts, views: Views): void {
  const { context, crew, sessions, pages, report } = parts;

  /** `entryId` of `run`: the entry that "from here" means; undefined for the session's end. */
  const onSession = (
    name: string,
    title: string,
    run: (sessionId: string, session: SessionInfo | undefined, entryId: string | undefined) => Promise<void>,
  ): Disposable =>
    commands.registerCommand(`crewlog.session.${name}`, async (...args: unknown[]) => {
      const call = callOf(args, views.sessions);
      if (call.kind === "nothing") return;
      const named = call.kind === "on";
      const sessionId = named ? call.target.sessionId : (await pickSession(parts, title, question(call, "Pick a session")))?.id;
      if (sessionId === undefined) return;
      try {
        await run(sessionId, sessions.get(sessionId), named ? call.entryId : undefined);
      } catch (error) {
        await report.failed(title, error);
      }
    });

  context.subscriptions.push(
    onSession("open", "Open Session", async (id, session, entryId) => pages.open(id, session && sessionTitle(session), entryId)),
    onSession("rename", "Rename Session", async (sessionId, session) => {
      const name = await window.showInputBox({
        title: "Rename Session",
        prompt: "Name; empty to be called by the first message again",
        value: session?.name ?? "",
        placeHolder: line(session?.firstMessage ?? "", 80),
      });
      if (name === undefined || name === session?.name) return;
      await report.during("Renaming the session", crew.request("session/setName", { sessionId, name: name.trim() }));
    }),
    onSession("fork", "Fork Session from Here", async (sessionId, session, entryId) => {
      const forked = await report.during(
        "Forking the session",
        crew.request("session/fork", { sessionId, ...(entryId ? { entryId } : {}) }),
      );
      const title = sessionTitle(forked.session);
      pages.open(forked.session.id, title);
      const of = session === undefined ? sessionId : sessionTitle(session);
      void window.showInformationMessage(
        inert(`Session ${forked.session.id} is a fork of "${line(of, 80)}"${entryId ? ", up to that entry" : ""}.`),
      );
    }),
    onSession("rewind", "Rewind Session to Here", async (sessionId, _session, entryId) => {
      const target = entryId ?? (await pickEntry(parts, sessionId));
      if (target === undefined) return;
      const { leafId } = await crew.request("session/open", { sessionId });
      const detail = "An agent that resumes the session goes on from there. Nothing is removed: what follows stays as a branch.";
      if ((await window.showWarningMessage("Rewind the session to this entry?", { modal: true, detail }, "Rewind")) !== "Rewind") return;
      const params = { sessionId, entryId: target, expectedLeafId: leafId };
      await report.during("Rewinding the session", crew.request("session/rewind", params));
      pages.open(sessionId);
    }),
    onSession("export", "Export Session", async (sessionId, session) => exportSession(parts, sessionId, session)),
    onSession("delete", "Delete Session", async (sessionId, session) => {
      const title = session === undefined ? sessionId : sessionTitle(session);
      const { deleted } = await report.during("Deleting the session", crew.request("session/delete", { sessionId }));
      if (!deleted) return;
      await remember(parts, [{ id: sessionId, title }, ...remembered(parts).filter(({ id }) => id !== sessionId)]);
      const told = inert(`"${line(title, 80)}" was deleted, with its tasks and team.`);
      void window.showInformationMessage(told, "Undo").then((chosen) => {
        if (chosen === "Undo") void restore(parts, sessionId);
      });
    }),
    // in the view's own menu VS Code names the focused row: it is no deleted session
    commands.registerCommand("crewlog.session.restore", async () => {
      const sessionId = await askDeleted(parts);
      if (sessionId !== undefined) await restore(parts, sessionId);
    }),
    commands.registerCommand("crewlog.session.search", () => search(parts)),
    commands.registerCommand("crewlog.sessions.more", () => report.during("Reading older sessions", sessions.showMore())),
  );
}

/** A quick pick that searches while one types, over all that was said. */
function search({ crew, pages, sessions, report }: Parts): void {
  const box = window.createQuickPick<QuickPickItem & { hit: SearchHit }>();
  box.title = "Search Sessions";
  box.placeholder = "Words that were said, thought or written by a tool";
  box.matchOnDescription = true;
  box.matchOnDetail = true;
  let timer: NodeJS.Timeout | undefined;
  let turn = 0;
  const ask = async (query: string) => {
    const mine = ++turn;
    box.busy = true;
    try {
      const found = await crew.request("session/search", { query, limit: HITS, ...sessions.where() });
      if (mine !== turn) return;
      const hits = found.hits.filter(({ session }) => sessions.shows(session));
      const now = Date.now();
      box.items = hits.map((hit) => ({ ...hitItem(hit, now), alwaysShow: true, hit }));
      box.placeholder = hits.length === 0 ? "Nothing was found" : box.placeholder;
      box.title = `Search Sessions: ${found.hits.length === HITS ? "the best hits" : count(hits.length, "hit")}`;
    } catch (error) {
      if (mine === turn) {
        box.hide();
        await report.failed("Search Sessions", error);
      }
    } finally {
      if (mine === turn) box.busy = false;
    }
  };
  box.onDidChangeValue((value) => {
    clearTimeout(timer);
    const query = value.trim();
    if (query === "") {
      turn++;
      box.busy = false;
      box.items = [];
      box.title = "Search Sessions";
    } else {
      timer = setTimeout(() => void ask(query), PAUSE_MS);
    }
  });
  box.onDidAccept(() => {
    const hit = box.selectedItems[0]?.hit;
    box.hide();
    if (hit === undefined) return;
    const where = hit.kind === "header" ? undefined : hit.entryId; // the session's name was found, and no place in it
    pages.open(hit.session.id, sessionTitle(hit.session), where);
  });
  box.onDidHide(() => {
    clearTimeout(timer);
    turn++;
    box.dispose();
  });
  box.show();
}

/** Entries to rewind to: what was said, newest first. */
async function pickEntry({ crew, report }: Parts, sessionId: string): Promise<string | undefined> {
  const asked = crew.request("session/entries", { sessionId, kinds: ["message"], limit: 200, maxBytes: 4_000_000 });
  const { entries } = await report.during("Reading the session", asked);
  const now = Date.now();
  const items = entries.reverse().map((entry) => {
    const message = (entry.data ?? {}) as unknown as Partial<Message>;
    const text = message.content?.find((block) => block.text)?.text ?? message.content?.[0]?.type ?? "(large entry)";
    return {
      label: inert(line(text, 100)) || "(empty)",
      description: inert(`${line(String(message.role ?? ""))} · ${age(entry.timestamp, now)}`),
      id: entry.id,
    };
  });
  return (await window.showQuickPick(items, { title: "Rewind Session", placeHolder: "The entry to go on from", matchOnDescription: true }))
    ?.id;
}

async function exportSession({ crew, report }: Parts, sessionId: string, session: SessionInfo | undefined): Promise<void> {
  const formats = [
    { label: "Markdown", format: "markdown" as const, extension: "md" },
    { label: "HTML", description: "one page, without scripts", format: "html" as const, extension: "html" },
    { label: "JSON", description: "every entry as it is", format: "json" as const, extension: "json" },
  ];
  const picked = await window.showQuickPick(formats, { title: "Export Session", placeHolder: "As what?" });
  if (picked === undefined) return;
  const name =
    (session === undefined ? sessionId : sessionTitle(session))
      .replace(/[^\p{L}\p{N}._-]+/gu, "-")
      .replace(/^[-.]+|[-.]+$/g, "")
      .slice(0, 60) || sessionId;
  const folder = workspace.workspaceFolders?.[0]?.uri;
  const file = `${name}.${picked.extension}`;
  const target = await window.showSaveDialog({
    title: "Export Session",
    defaultUri: folder === undefined ? Uri.file(file) : Uri.joinPath(folder, file),
    filters: { [picked.label]: [picked.extension] },
  });
  if (target === undefined) return;
  const { text } = await report.during("Exporting the session", crew.request("session/export", { sessionId, format: picked.format }));
  await workspace.fs.writeFile(target, new TextEncoder().encode(text));
  const chosen = await window.showInformationMessage(inert(`The session was written to ${target.fsPath}.`), "Open");
  if (chosen === "Open") await window.showTextDocument(target);
}

async function askDeleted(parts: Parts): Promise<string | undefined> {
  type Item = QuickPickItem & { id?: string };
  const known = remembered(parts);
  const ask = () =>
    window.showInputBox({
      title: "Restore Deleted Session",
      prompt: "The id of the session: eight digits and letters from a to f",
      validateInput: (text) => (/^[0-9a-f]{8}$/.test(text.trim()) ? undefined : "An id has eight digits and letters from a to f."),
    });
  if (known.length === 0) return (await ask())?.trim();
  const items: Item[] = [
    ...known.map(({ id, title }) => ({ label: inert(title), description: id, id })),
    { label: "$(edit) By its id…", alwaysShow: true },
  ];
  const picked = await window.showQuickPick<Item>(items, {
    title: "Restore Deleted Session",
    placeHolder: "Deleted in this workspace",
    matchOnDescription: true,
  });
  return picked === undefined ? undefined : (picked.id ?? (await ask())?.trim());
}

async function restore(parts: Parts, sessionId: string): Promise<void> {
  const { crew, report } = parts;
  try {
    await report.during("Restoring the session", crew.request("session/restore", { sessionId }));
    await remember(
      parts,
      remembered(parts).filter(({ id }) => id !== sessionId),
    );
  } catch (error) {
    await report.failed("The session was not restored", error);
  }
}

function remembered({ context }: Parts): DeletedSession[] {
  return context.workspaceState.get<DeletedSession[]>(DELETED, []);
}

async function remember({ context }: Parts, sessions: DeletedSession[]): Promise<void> {
  await context.workspaceState.update(DELETED, sessions.slice(0, 50));
}
