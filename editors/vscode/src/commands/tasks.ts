import { commands, type QuickPickItem, QuickPickItemKind, window } from "vscode";
import type { Parts } from "../context";
import type { Documents } from "../documents";
import type { TaskTarget } from "../model/row";
import { sessionTitle } from "../model/sessions";
import { compareIds, holder, isFiltered, listName, STATE_NAMES, type TaskFilter, type TaskState } from "../model/tasks";
import type { Task, TaskUpdateParams } from "../protocol";
import { settings } from "../settings";
import { inert, line } from "../text";
import type { Views } from "../views";
import { callOf, claimable, pickList, pickTask, question, sayLost } from "./pick";

/** The list that a task made without any list around goes to. */
const FIRST_LIST = "board";

export function registerTaskCommands(parts: Parts, views: Views, documents: Documents): void {
  const { context, crew, board, report } = parts;

  /** Registers a command on one task: named by its argument, or picked among those that `fits`. */
  const onTask = (
    name: string,
    title: string,
    fits: (task: Task, tasks: ReadonlyMap<string, Task>) => boolean,
    run: (target: TaskTarget) => Promise<void>,
  ) =>
    commands.registerCommand(`crewlog.task.${name}`, async (...args: unknown[]) => {
      const call = callOf(args, views.tasks);
      if (call.kind === "nothing") return;
      const target = call.kind === "on" ? call.target.task : await pickTask(parts, title, question(call, "Pick a task"), fits);
      if (target === undefined) return;
      try {
        await run(target);
      } catch (error) {
        await report.failed(title, error);
      }
    });

  const find = async ({ listId, id }: TaskTarget): Promise<Task | undefined> => {
    await board.load(listId);
    return board.list(listId)?.tasks?.get(id) ?? (await crew.request("task/get", { listId, id })) ?? undefined;
  };
  const update = (title: string, params: TaskUpdateParams) => report.during(title, crew.request("task/update", params));

  context.subscriptions.push(
    commands.registerCommand("crewlog.task.create", async (...args: unknown[]) => {
      try {
        await createTask(parts, listOf(args));
      } catch (error) {
        await report.failed("No task was added", error);
      }
    }),
    onTask(
      "open",
      "Show Task",
      () => true,
      async (target) => documents.showTask(target),
    ),
    onTask(
      "edit",
      "Edit Task",
      () => true,
      async (target) => {
        const task = await find(target);
        if (task === undefined) throw new Error(`Task ${target.id} is not there any more.`);
        const change = await askChange(parts, target, task);
        if (change !== undefined) await update("Changing the task", { ...target, ...change });
      },
    ),
    onTask("claim", "Claim as Me", claimable, async ({ listId, id }) => {
      await report.during("Claiming the task", crew.request("task/claim", { listId, id, owner: settings().owner }));
    }),
    onTask(
      "release",
      "Release Task",
      (task) => task.status !== "completed" && holder(task, Date.now()) !== "",
      async (target) => {
        const task = await find(target);
        const owner = task?.owner;
        if (!owner) return;
        if (owner !== settings().owner) {
          const question = inert(`${line(owner)} holds #${line(target.id)}. Give it back on behalf of ${line(owner)}?`);
          const detail = "An agent that still works on it is not stopped by this: another may take the task meanwhile.";
          if ((await window.showWarningMessage(question, { modal: true, detail }, "Release")) !== "Release") return;
        }
        const { listId, id } = target;
        await report.during("Releasing the task", crew.request("task/release", { listId, id, owner }));
      },
    ),
    onTask(
      "start",
      "Start Task",
      (task) => task.status === "pending",
      async ({ listId, id }) => void (await update("Starting the task", { listId, id, status: "in_progress" })),
    ),
    onTask(
      "complete",
      "Complete Task",
      (task) => task.status !== "completed",
      async ({ listId, id }) => void (await update("Completing the task", { listId, id, status: "completed" })),
    ),
    onTask(
      "reopen",
      "Reopen Task",
      (task) => task.status === "completed",
      async ({ listId, id }) => void (await update("Reopening the task", { listId, id, status: "pending", owner: "" })),
    ),
    onTask(
      "delete",
      "Delete Task",
      () => true,
      async (target) => {
        const task = await find(target);
        const name = inert(`#${line(target.id)} ${line(task?.subject ?? "", 100)}`);
        const detail = "This cannot be undone. Tasks that wait for it no longer do.";
        if ((await window.showWarningMessage(`Delete ${name}?`, { modal: true, detail }, "Delete")) !== "Delete") return;
        const { listId, id } = target;
        await report.during("Deleting the task", crew.request("task/delete", { listId, id }));
      },
    ),
    commands.registerCommand("crewlog.task.unblock", async (...args: unknown[]) => {
      const call = callOf(args);
      if (call.kind === "lost") sayLost();
      const target = call.kind === "on" ? call.target.task : undefined;
      if (target?.waiting === undefined) return;
      try {
        await update("Removing the blocker", { listId: target.listId, id: target.waiting, removeBlockedBy: [target.id] });
      } catch (error) {
        await report.failed("The blocker was not removed", error);
      }
    }),
    commands.registerCommand("crewlog.tasks.filter", () => askFilter(parts, views)),
    commands.registerCommand("crewlog.tasks.changeFilter", () => askFilter(parts, views)),
    commands.registerCommand("crewlog.tasks.clearFilter", () => views.setFilter({})),
    commands.registerCommand("crewlog.list.activate", async (...args: unknown[]) => {
      const listId = listOf(args) ?? (await pickList(parts, "Show in Status Bar"))?.listId;
      if (listId === undefined) return;
      board.choose(listId);
      await context.workspaceState.update("activeList", listId);
    }),
    commands.registerCommand("crewlog.list.graph", async (...args: unknown[]) => {
      const listId = listOf(args);
      const list = listId === undefined ? await pickList(parts, "Show Dependency Graph") : board.list(listId);
      if (list !== undefined) parts.graphs.open(list.listId, listName(list));
    }),
  );
}

/** The list of the row that a command was called on, or that had the focus when a button of the view was pressed. */
function listOf(args: readonly unknown[]): string | undefined {
  const call = callOf(args);
  return call.kind === "on" ? call.target.listId : undefined;
}

async function createTask(parts: Parts, named: string | undefined): Promise<void> {
  const { crew, board, report } = parts;
  const listId = named ?? (await askList(parts));
  if (listId === undefined) return;
  // which of several it goes to was perhaps decided by the row that has the focus
  const list = board.lists().length > 1 ? board.list(listId) : undefined;
  const subject = await window.showInputBox({
    title: list === undefined ? "New Task" : inert(`New Task in "${listName(list)}"`),
    prompt: "What is to be done",
    placeHolder: "Fix the parser",
    ignoreFocusOut: true,
    validateInput: (text) => (text.trim() === "" ? "A task needs a subject." : undefined),
  });
  if (subject === undefined) return;
  await report.during("Adding the task", crew.request("task/create", { listId, subject: subject.trim() }));
}

/** The list for a new task: the only one, or one that is picked; sessions that have none yet can get one. */
async function askList({ board, sessions }: Parts): Promise<string | undefined> {
  const lists = board.lists().filter(({ counts }) => counts.total > 0);
  if (lists.length === 1) return lists[0]?.listId;
  const has = new Set(lists.map(({ listId }) => listId));
  const others = sessions.all().filter(({ id }) => !has.has(id));
  type Item = QuickPickItem & { listId?: string; ask?: boolean };
  const own: Item[] = has.has(FIRST_LIST)
    ? []
    : [{ label: `$(add) New list "${FIRST_LIST}"`, description: "belongs to no session", listId: FIRST_LIST }];
  const items: Item[] = [
    ...lists.map((list) => ({
      label: inert(listName(list)),
      description: inert(list.session ? `session ${list.session.id}` : list.listId),
      listId: list.listId,
    })),
    ...own,
    { label: "$(add) New list of another name…", ask: true, alwaysShow: true },
    ...(others.length > 0 ? [{ label: "Sessions without tasks", kind: QuickPickItemKind.Separator }] : []),
    ...others
      .slice(0, 50)
      .map((session) => ({ label: inert(sessionTitle(session)), description: `session ${session.id}`, listId: session.id })),
  ];
  const picked = await window.showQuickPick<Item>(items, { title: "New Task", placeHolder: "In which list?", matchOnDescription: true });
  if (picked?.ask !== true) return picked?.listId;
  return window.showInputBox({ title: "New Task", prompt: "Name of the list: agents are given it as the list's id", placeHolder: "board" });
}

type Change = Omit<TaskUpdateParams, "listId" | "id">;

/** Asks for the field and its new value; undefined when the user went away. */
async function askChange({ board }: Parts, target: TaskTarget, task: Task): Promise<Change | undefined> {
  const tasks = board.list(target.listId)?.tasks ?? new Map<string, Task>();
  const blockers = task.blockedBy.map((id) => `#${id}`).join(", ");
  const items = [
    { label: "Subject", description: line(task.subject, 80), field: "subject" },
    { label: "Description", description: line(task.description ?? "", 80), field: "description" },
    { label: "Text while it is done", description: line(task.activeForm ?? "", 80), field: "activeForm" },
    { label: "Owner", description: line(task.owner ?? "", 80) || "nobody", field: "owner" },
    { label: "Status", description: task.status.replace("_", " "), field: "status" },
    { label: "Blockers", description: blockers || "none", field: "blockers" },
  ] as const;
  const shown = items.map((item) => ({ ...item, description: inert(item.description) }));
  const picked = await window.showQuickPick(shown, {
    title: inert(`Edit #${line(task.id)} ${line(task.subject, 80)}`),
    placeHolder: "What to change",
  });
  const title = `Edit #${line(task.id)}`;
  switch (picked?.field) {
    case undefined:
      return undefined;
    case "status": {
      const states = (["pending", "in_progress", "completed"] as const).map((status) => ({
        label: status === "pending" ? "open" : status.replace("_", " "),
        status,
      }));
      const status = (await window.showQuickPick(states, { title, placeHolder: "Status" }))?.status;
      return status === undefined ? undefined : { status };
    }
    case "blockers": {
      const before = new Set(task.blockedBy);
      const choices = [...tasks.values()]
        .filter(({ id, status }) => id !== task.id && (status !== "completed" || before.has(id)))
        .sort((a, b) => compareIds(a.id, b.id))
        .map((other) => ({ label: inert(`#${line(other.id, 20)} ${line(other.subject)}`), id: other.id, picked: before.has(other.id) }));
      if (choices.length === 0) {
        void window.showInformationMessage("There is no other task in this list that it could wait for.");
        return undefined;
      }
      const chosen = await window.showQuickPick(choices, { title, placeHolder: "Tasks that it waits for", canPickMany: true });
      if (chosen === undefined) return undefined;
      const after = new Set(chosen.map(({ id }) => id));
      return {
        addBlockedBy: [...after].filter((id) => !before.has(id)),
        removeBlockedBy: [...before].filter((id) => !after.has(id) && tasks.has(id)),
      };
    }
    default: {
      const field = picked?.field as "subject" | "description" | "activeForm" | "owner";
      const value = await window.showInputBox({
        title,
        prompt: picked?.label,
        value: task[field] ?? "",
        ignoreFocusOut: true,
        validateInput: (text) => (field === "subject" && text.trim() === "" ? "A task needs a subject." : undefined),
      });
      return value === undefined || value === (task[field] ?? "") ? undefined : { [field]: value };
    }
  }
}

async function askFilter({ board }: Parts, views: Views): Promise<void> {
  await Promise.all(board.lists().map(({ listId }) => board.load(listId)));
  const { owners, states } = views.filter;
  const known = new Set<string>(owners?.filter((owner) => owner !== null));
  for (const { tasks } of board.lists()) for (const { owner } of tasks?.values() ?? []) if (owner) known.add(owner);
  type Item = QuickPickItem & { state?: TaskState; owner?: string | null };
  const byState: Item[] = (["ready", "blocked", "claimed", "inProgress", "lapsed", "completed"] as const).map((state) => ({
    label: STATE_NAMES[state],
    state,
    picked: states?.includes(state) ?? false,
  }));
  const byOwner: Item[] = [null, ...[...known].sort()].map((owner) => ({
    label: owner === null ? "nobody" : inert(line(owner)),
    ...(owner === settings().owner ? { description: "you" } : {}),
    owner,
    picked: owners?.includes(owner) ?? false,
  }));
  const items: Item[] = [
    { label: "Status", kind: QuickPickItemKind.Separator },
    ...byState,
    { label: "Owner", kind: QuickPickItemKind.Separator },
    ...byOwner,
  ];
  const chosen = await window.showQuickPick<Item & { picked?: boolean }>(items, {
    title: isFiltered(views.filter) ? "Change Filter" : "Filter Tasks",
    placeHolder: "Statuses and owners to show; none for all",
    canPickMany: true,
  });
  if (chosen === undefined) return;
  const filter: TaskFilter = {};
  const chosenStates = chosen.map(({ state }) => state).filter((state) => state !== undefined);
  const chosenOwners = chosen.map(({ owner }) => owner).filter((owner) => owner !== undefined);
  if (chosenStates.length > 0) filter.states = chosenStates;
  if (chosenOwners.length > 0) filter.owners = chosenOwners;
  views.setFilter(filter);
}
