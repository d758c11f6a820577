// What a command is about: the row it was called on, what another part of the extension named, the row selected when a key was pressed,
// or what the user picks.
import { type QuickPickItem, type TreeView, window } from "vscode";
import type { Parts } from "../context";
import type { Row, Target, TaskTarget } from "../model/row";
import { sessionTitle } from "../model/sessions";
import { compareIds, countsText, holder, listName, openBlockers, STATE_NAMES, stateOf, type TaskList } from "../model/tasks";
import { age } from "../model/time";
import type { SessionInfo, Task } from "../protocol";
import { inert, line } from "../text";

/** The argument of a command: a row of a view, a target by itself, or the mark of a key. */
export type Argument = Row | (Partial<TaskTarget> & Target) | { selected: true } | undefined;

export function targetOf(argument: Argument, view?: TreeView<Row>): Target | undefined {
  if (argument === undefined || argument === null) return undefined;
  if ("selected" in argument) return view?.selection[0]?.target;
  if ("key" in argument) return argument.target;
  return "id" in argument && argument.listId !== undefined && argument.id !== undefined
    ? { ...argument, task: { listId: argument.listId, id: argument.id } }
    : argument;
}

type Picked<T> = QuickPickItem & { value: T };

export async function pickTask(
  { board }: Parts,
  title: string,
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
  return (await window.showQuickPick(items, { title, placeHolder: "Pick a task", matchOnDescription: true }))?.value;
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

export async function pickSession({ sessions }: Parts, title: string): Promise<SessionInfo | undefined> {
  const now = Date.now();
  const items: Picked<SessionInfo>[] = sessions.all().map((session) => ({
    label: inert(sessionTitle(session)),
    description: inert(`${age(session.updated, now)} · ${session.id}`),
    value: session,
  }));
  return (await window.showQuickPick(items, { title, placeHolder: "Pick a session", matchOnDescription: true }))?.value;
}

export async function pickPlan({ plans }: Parts, title: string): Promise<string | undefined> {
  const now = Date.now();
  const items: Picked<string>[] = plans.all.map((plan) => ({
    label: inert(line(plan.name)),
    description: age(plan.modified, now),
    value: plan.name,
  }));
  return (await window.showQuickPick(items, { title, placeHolder: "Pick a plan" }))?.value;
}
