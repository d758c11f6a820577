// What the Tasks view shows.
import type { Counts, SessionInfo, Task } from "../protocol";
import { count, line, lines } from "../text";
import type { Row } from "./row";
import { age } from "./time";

/** How long a completed task stays on top. */
export const RECENT_MS = 30_000;

export interface TaskList {
  listId: string;
  session: SessionInfo | null;
  counts: Counts;
  /** RFC 3339. */
  modified: string;
  /** Undefined until they were read. */
  tasks: ReadonlyMap<string, Task> | undefined;
  /** Why they cannot be read. */
  problem?: string;
}

export type TaskState = "blocked" | "ready" | "claimed" | "inProgress" | "lapsed" | "completed" | "unknown";

/** `owner` null: tasks that nobody holds. What is left out is not filtered by. */
export interface TaskFilter {
  owners?: (string | null)[];
  states?: TaskState[];
}

export const STATE_NAMES: Record<TaskState, string> = {
  ready: "ready",
  blocked: "blocked",
  claimed: "claimed",
  inProgress: "in progress",
  lapsed: "lapsed",
  completed: "completed",
  unknown: "of unknown status",
};

/** The tasks that `task` waits for: blockers that exist and are not completed. */
export function openBlockers(task: Task, tasks: ReadonlyMap<string, Task>): Task[] {
  return task.blockedBy.map((id) => tasks.get(id)).filter((found): found is Task => found !== undefined && found.status !== "completed");
}

/** Who holds the task now: nobody once the lease lapsed. */
export function holder(task: Task, now: number): string {
  return isLapsed(task, now) ? "" : (task.owner ?? "");
}

export function isLapsed(task: Task, now: number): boolean {
  if (task.status === "completed" || !task.claim) return false;
  return task.claim.lapsed === true || (task.claim.expiresAt !== undefined && Date.parse(task.claim.expiresAt) < now);
}

export function stateOf(task: Task, tasks: ReadonlyMap<string, Task>, now: number): TaskState {
  if (task.status === "completed") return "completed";
  if (isLapsed(task, now)) return "lapsed";
  if (task.status === "in_progress") return "inProgress";
  if (task.status !== "pending") return "unknown";
  if (openBlockers(task, tasks).length > 0) return "blocked";
  return task.owner ? "claimed" : "ready";
}

export function isRecent(task: Task, now: number): boolean {
  if (task.status !== "completed" || !task.completedAt) return false;
  const since = now - Date.parse(task.completedAt);
  return since < RECENT_MS && since > -RECENT_MS; // clocks of two machines may differ
}

/** When the view looks different without anything having changed: a completed task leaves the top, a lease lapses. Infinity for never. */
export function nextChange(lists: TaskList[], now: number): number {
  let next = Number.POSITIVE_INFINITY;
  for (const { tasks } of lists) {
    for (const task of tasks?.values() ?? []) {
      if (isRecent(task, now) && task.completedAt) next = Math.min(next, Date.parse(task.completedAt) + RECENT_MS);
      if (!isLapsed(task, now) && task.status !== "completed" && task.claim?.expiresAt)
        next = Math.min(next, Date.parse(task.claim.expiresAt));
    }
  }
  return next;
}

/** Numbers as numbers, before other text. */
export function compareIds(a: string, b: string): number {
  const [x, y] = [/^\d+$/.test(a), /^\d+$/.test(b)];
  if (x && y) return a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);
  return x === y ? (a < b ? -1 : a > b ? 1 : 0) : x ? -1 : 1;
}

export function listName(list: TaskList): string {
  return line(list.session?.name || list.session?.firstMessage || "", 80) || line(list.listId, 80);
}

export function countsText(counts: Counts): string {
  const parts = [`${counts.pending} open`];
  if (counts.inProgress > 0) parts.push(`${counts.inProgress} in progress`);
  if (counts.completed > 0) parts.push(`${counts.completed} done`);
  return parts.join(" · ");
}

export function filterText(filter: TaskFilter): string {
  const owners = filter.owners?.map((owner) => (owner === null ? "nobody's" : line(owner, 40))) ?? [];
  return [...(filter.states?.map((state) => STATE_NAMES[state]) ?? []), ...owners].join(", ");
}

export function isFiltered(filter: TaskFilter): boolean {
  return filter.owners !== undefined || filter.states !== undefined;
}

function fits(task: Task, state: TaskState, filter: TaskFilter, now: number): boolean {
  const owner = task.status === "completed" ? (task.owner ?? "") : holder(task, now);
  return (
    (filter.states === undefined || filter.states.includes(state)) && (filter.owners === undefined || filter.owners.includes(owner || null))
  );
}

/** The lists as rows; a list that is alone gives its groups at once. `activeId`: the one that is shown open. */
export function taskRows(lists: TaskList[], activeId: string | undefined, filter: TaskFilter, me: string, now: number): Row[] {
  const shown = lists.filter((list) => list.counts.total > 0 && (!isFiltered(filter) || matches(list, filter, now)));
  const [only] = shown;
  if (only === undefined) return [];
  if (shown.length === 1 && lists.length === 1) return groupRows(only, filter, me, now);
  return shown.map((list) => {
    const name = listName(list);
    const told = list.session ? `session ${list.session.id}` : "a list of its own";
    return {
      key: `list:${list.listId}`,
      label: name,
      description: countsText(list.counts),
      tooltip: `${name}\nTask list ${line(list.listId)}, ${told}\n${countsText(list.counts)}, changed ${age(list.modified, now)} ago`,
      icon: list.listId === activeId ? { name: "pinned", color: "charts.blue" } : { name: "checklist" },
      context: ["list", "id", ...(list.session ? ["ofSession"] : [])],
      expanded: list.listId === activeId || isFiltered(filter),
      children: () => groupRows(list, filter, me, now),
      target: { listId: list.listId, copy: list.listId, ...(list.session ? { sessionId: list.session.id } : {}) },
    };
  });
}

function matches(list: TaskList, filter: TaskFilter, now: number): boolean {
  const tasks = list.tasks;
  return tasks === undefined || [...tasks.values()].some((task) => fits(task, stateOf(task, tasks, now), filter, now));
}

function groupRows(list: TaskList, filter: TaskFilter, me: string, now: number): Row[] {
  const tasks = list.tasks;
  if (list.problem !== undefined) {
    return [
      {
        key: `problem:${list.listId}`,
        label: line(list.problem),
        tooltip: lines(list.problem),
        icon: { name: "error", color: "list.errorForeground" },
      },
    ];
  }
  if (tasks === undefined) return [];
  const group = (name: string, title: string, expanded = true): Group => ({ name, title, expanded, tasks: [] });
  const recent = group("recent", "Just completed");
  const inProgress = group("inProgress", "In progress");
  const pending = group("pending", "Open");
  const other = group("other", "Of unknown status");
  const completed = group("completed", "Completed", false);
  const groups = [recent, inProgress, pending, other, completed];
  for (const task of tasks.values()) {
    if (!fits(task, stateOf(task, tasks, now), filter, now)) continue;
    if (isRecent(task, now)) recent.tasks.push(task);
    else if (task.status === "completed") completed.tasks.push(task);
    else if (task.status === "in_progress") inProgress.tasks.push(task);
    else if (task.status === "pending") pending.tasks.push(task);
    else other.tasks.push(task);
  }
  for (const group of groups) group.tasks.sort((a, b) => compareIds(a.id, b.id));
  recent.tasks.sort((a, b) => Date.parse(b.completedAt ?? "") - Date.parse(a.completedAt ?? ""));
  // what can be done comes before what must wait
  const waits = new Map(pending.tasks.map((task) => [task.id, openBlockers(task, tasks).length > 0]));
  pending.tasks.sort((a, b) => Number(waits.get(a.id)) - Number(waits.get(b.id)));
  return groups
    .filter((group) => group.tasks.length > 0)
    .map((group) => ({
      key: `group:${list.listId}:${group.name}`,
      label: group.title,
      description: String(group.tasks.length),
      spoken: `${group.title}, ${count(group.tasks.length, "task")}`,
      context: ["group"],
      expanded: group.expanded || filter.states?.includes("completed") === true,
      children: () => group.tasks.map((task) => taskRow(task, list.listId, tasks, me, now)),
    }));
}

interface Group {
  name: string;
  title: string;
  expanded: boolean;
  tasks: Task[];
}

const ICONS: Record<TaskState, { name: string; color?: string }> = {
  ready: { name: "circle-large-outline" },
  blocked: { name: "circle-slash", color: "charts.yellow" },
  claimed: { name: "account" },
  inProgress: { name: "play-circle", color: "charts.blue" },
  lapsed: { name: "warning", color: "list.warningForeground" },
  completed: { name: "pass-filled", color: "charts.green" },
  unknown: { name: "question" },
};

/** A task; the tasks that it waits for are its children. `parents`: rows above it, so that a cycle in damaged files ends. */
function taskRow(task: Task, listId: string, tasks: ReadonlyMap<string, Task>, me: string, now: number, parents: string[] = []): Row {
  const state = stateOf(task, tasks, now);
  const blockers = openBlockers(task, tasks);
  const owner = holder(task, now);
  const label = (state === "inProgress" && line(task.activeForm ?? "")) || line(task.subject) || "(no subject)";
  const facts = [`#${line(task.id, 20)}`];
  // what is wrong first: the end is cut off in a narrow side bar
  if (state === "lapsed") facts.push("lease lapsed");
  if (task.status !== "completed" && blockers.length > 0)
    facts.push(`waits for ${blockers.map(({ id }) => `#${line(id, 20)}`).join(", ")}`);
  if (task.owner) facts.push(line(task.owner, 40));
  const context = ["task", "id"];
  if (task.status === "completed") context.push("completed");
  else context.push("completable");
  if (task.status !== "completed" && owner === "" && blockers.length === 0) context.push("claimable");
  if (task.status !== "completed" && owner !== "") context.push("held", ...(owner === me ? ["mine"] : []));
  if (state === "claimed" && owner === me) context.push("startable");
  const waiting = parents.at(-1);
  if (waiting !== undefined) context.push("blocker");
  const target = { listId, id: task.id, ...(waiting !== undefined ? { waiting } : {}) };
  const row: Row = {
    key: `task:${listId}:${[...parents, task.id].join("<")}`,
    label,
    description: facts.join(" · "),
    tooltip: tooltip(task, state, blockers),
    spoken: `${waiting === undefined ? "" : `blocker of ${waiting}: `}${label}, ${STATE_NAMES[state]}, ${facts.join(", ")}`,
    icon: ICONS[state],
    context,
    run: { command: "crewlog.task.open", title: "Show Task", args: [{ listId, id: task.id }] },
    target: { task: target, listId, copy: task.id },
  };
  if (task.status !== "completed" && blockers.length > 0 && !parents.includes(task.id) && parents.length < 50) {
    row.expanded = false;
    row.children = () => blockers.map((blocker) => taskRow(blocker, listId, tasks, me, now, [...parents, task.id]));
  }
  return row;
}

function tooltip(task: Task, state: TaskState, blockers: Task[]): string {
  const told = [`#${line(task.id)} ${line(task.subject)}`, `Status: ${STATE_NAMES[state]}`];
  if (task.owner) told.push(`Owner: ${line(task.owner)}${state === "lapsed" ? " (did not renew the lease)" : ""}`);
  if (task.claim?.expiresAt && state !== "lapsed") told.push(`Lease until ${new Date(task.claim.expiresAt).toLocaleTimeString()}`);
  for (const blocker of blockers) told.push(`Waits for #${line(blocker.id)} ${line(blocker.subject, 80)}`);
  if (task.blocks.length > 0) told.push(`Blocks ${task.blocks.map((id) => `#${line(id, 20)}`).join(", ")}`);
  if (task.description) told.push("", lines(task.description));
  return told.join("\n");
}

/** All that is known of a task, as text to read. */
export function taskText(task: Task, tasks: ReadonlyMap<string, Task>, list: TaskList, now: number): string {
  const state = stateOf(task, tasks, now);
  const named = (ids: string[]) =>
    ids.map(
      (id) => `#${id} ${tasks.get(id)?.subject ?? "(not there any more)"}${tasks.get(id)?.status === "completed" ? " (completed)" : ""}`,
    );
  const out = [`#${task.id} ${task.subject}`, "", `List        ${listName(list)} (${list.listId})`, `Status      ${STATE_NAMES[state]}`];
  if (task.owner) out.push(`Owner       ${task.owner}`);
  if (task.claim)
    out.push(
      `Claim       generation ${task.claim.generation}${task.claim.expiresAt ? `, lease until ${task.claim.expiresAt}` : ", without a lease"}`,
    );
  if (task.activeForm) out.push(`While done  ${task.activeForm}`);
  if (task.completedAt) out.push(`Completed   ${task.completedAt}`);
  for (const name of named(task.blockedBy)) out.push(`Waits for   ${name}`);
  for (const name of named(task.blocks)) out.push(`Blocks      ${name}`);
  if (task.description) out.push("", task.description);
  if (task.metadata && Object.keys(task.metadata).length > 0) out.push("", `Metadata    ${JSON.stringify(task.metadata, null, 2)}`);
  return `${out.map((part) => lines(part, 1_000_000)).join("\n")}\n`;
}
