// What a command is about: the row it was called on, what another part of the extension named, the row that has the focus when a key is
// pressed, or what the user picks.
import { type QuickPickItem, type TreeView, window } from "vscode";
import type { Parts } from "../context";
import type { Target, TaskTarget } from "../model/row";
import { sessionTitle } from "../model/sessions";
import { compareIds, countsText, holder, listName, openBlockers, STATE_NAMES, stateOf, type TaskList } from "../model/tasks";
import { age } from "../model/time";
import type { SessionInfo, Task } from "../protocol";
import { inert, line } from "../text";
import type { Element } from "../views/elements";

/** What a command is about, as another part of the extension names it. `entryId`: the entry of a session that "here" means. */
export type Named = Partial<TaskTarget> & Target & { entryId?: string };

/**
 * How a command was called: `on` what is known already; `free`, so that it is still to be asked; on a row that VS Code did not name since
 * it was just being told of other rows (`lost`): no other row may be taken for it; or by a key in a view where no row has the focus.
 */
export type Call = { kind: "on"; target: Target; entryId?: string } | { kind: "free" } | { kind: "lost" } | { kind: "nothing" };

/** `view`: where the keys of the command work. */
export function callOf(args: readonly unknown[], view?: TreeView<Element>): Call {
  const [first] = args;
  if (args.length === 0) return { kind: "free" };
  if (first === undefined || first === null) return { kind: "lost" };
  if (Array.isArray(first)) {
    // a key: package.json names the focused row as VS Code's own buttons of a view do; where that is not understood, the selected one is it
    const [named] = first as [unknown];
    const element = isElement(named) ? named : named === undefined || named === null ? undefined : view?.selection[0];
    return element?.row.target === undefined ? { kind: "nothing" } : { kind: "on", target: element.row.target };
  }
  if (isElement(first)) return first.row.target === undefined ? { kind: "free" } : { kind: "on", target: first.row.target };
  const { entryId, id, ...target } = first as Named;
  const named = id !== undefined && target.listId !== undefined ? { ...target, task: { listId: target.listId, id } } : target;
  return { kind: "on", target: named, ...(entryId === undefined ? {} : { entryId }) };
}

function isElement(argument: unknown): argument is Element {
  return typeof argument === "object" && argument !== null && "row" in argument;
}

/** What the user is asked, where the row that a command was chosen on is not known. */
export function question(call: Call, asked: string): string {
  return call.kind === "lost" ? `The view changed just as you chose. ${asked}` : asked;
}

/** For commands that are about a row and nothing else. */
export function sayLost(): void {
  void window.showWarningMessage("The view changed just as you chose: nothing was done. Choose again.", "OK");
}

type Picked<T> = QuickPickItem & { value: T };

export async function pickTask(
  { board }: Parts,
  title: string,
  placeHolder: string,
  fits: (task: Task, tasks: ReadonlyMap<string, Task>) => boolean,
): Promise<TaskTarget | undefined> {
  const lists = board.lists().filter(({ counts }) => counts.total > 0);
  await Promise.all(lists.map(({ listId }) => board.load(listId)));
  const now = Date.now();
  const items: Picked<TaskTarget>[] = lists.flatMap(({ listId }) => {
    const list = board.list(listId);
    const tasks = list?.tasks;
    if (list === undefined || tasks === undefined) return [];
    return [...tasks.values()]
      .filter((task) => fits(task, tasks))
      .sort((a, b) => compareIds(a.id, b.id))
      .map((task) => ({
        label: inert(`#${line(task.id, 20)} ${line(task.subject) || "(no subject)"}`),
        description: inert(
          [STATE_NAMES[stateOf(task, tasks, now)], line(task.owner ?? "", 40), lists.length > 1 ? listName(list) : ""]
            .filter(Boolean)
            .join(" · "),
        ),
        value: { listId, id: task.id },
      }));
  });
  if (items.length === 0) {
    void window.showInformationMessage(`${title}: there is no task for which that can be done.`);
    return undefined;
  }
  return (await window.showQuickPick(items, { title, placeHolder, matchOnDescription: true }))?.value;
}

export function claimable(task: Task, tasks: ReadonlyMap<string, Task>): boolean {
  return task.status !== "completed" && holder(task, Date.now()) === "" && openBlockers(task, tasks).length === 0;
}

export async function pickList({ board }: Parts, title: string): Promise<TaskList | undefined> {
  const lists = board.lists().filter(({ counts }) => counts.total > 0);
  if (lists.length <= 1) return lists[0];
  const items: Picked<TaskList>[] = lists.map((list) => ({
    label: inert(listName(list)),
    description: countsText(list.counts),
    value: list,
  }));
  return (await window.showQuickPick(items, { title, placeHolder: "Pick a task list" }))?.value;
}

export async function pickSession({ sessions }: Parts, title: string, placeHolder: string): Promise<SessionInfo | undefined> {
  const now = Date.now();
  const items: Picked<SessionInfo>[] = sessions.all().map((session) => ({
    label: inert(sessionTitle(session)),
    description: inert(`${age(session.updated, now)} · ${session.id}`),
    value: session,
  }));
  return (await window.showQuickPick(items, { title, placeHolder, matchOnDescription: true }))?.value;
}

export async function pickPlan({ plans }: Parts, title: string, placeHolder: string): Promise<string | undefined> {
  const now = Date.now();
  const items: Picked<string>[] = plans.all.map((plan) => ({
    label: inert(line(plan.name)),
    description: age(plan.modified, now),
    value: plan.name,
  }));
  return (await window.showQuickPick(items, { title, placeHolder }))?.value;
}
