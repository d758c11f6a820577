/** From the tasks of a list to what a graph of them shows. Pure: no VS Code, no browser. */

import { compareIds, openBlockers, stateOf, type TaskState } from "../model/tasks";
import type { Task } from "../protocol";

/** A task as the page gets it: cut to what a box and its tooltip can hold. */
export interface GraphTask {
  id: string;
  subject: string;
  /** What is being done, while it is. */
  doing: string;
  owner: string;
  state: TaskState;
  blockedBy: string[];
  /** Those of `blockedBy` that it still waits for. */
  waitsFor: string[];
  description: string;
}

export interface GraphNode {
  /** Undefined: a task is waited for that is not there. */
  task: GraphTask | undefined;
  id: string;
  /** Ids, without those that are not shown. */
  before: string[];
  after: string[];
}

export interface GraphEdge {
  /** The blocker. */
  from: string;
  to: string;
  /** It is one of those that wait for each other in a circle. */
  cyclic: boolean;
  /** The blocker is completed or is not there: nothing waits for it any more. */
  settled: boolean;
}

export interface Graph {
  /** By number, so that equal lists look equal. */
  nodes: Map<string, GraphNode>;
  edges: GraphEdge[];
  /** Tasks that wait for each other and are not all completed; each in the order in which they wait. */
  cycles: string[][];
}

const SUBJECT = 300;
const DESCRIPTION = 600;
/** Of one task; whoever writes more blockers into a file wants to see what breaks. */
const BLOCKERS = 200;

export function graphTasks(tasks: ReadonlyMap<string, Task>, now: number): GraphTask[] {
  return [...tasks.values()].map((task) => ({
    id: task.id,
    subject: cut(task.subject, SUBJECT),
    doing: cut(task.activeForm, SUBJECT),
    owner: cut(task.owner, 100),
    state: stateOf(task, tasks, now),
    blockedBy: [...new Set(task.blockedBy)].slice(0, BLOCKERS),
    waitsFor: [...new Set(openBlockers(task, tasks).map(({ id }) => id))].slice(0, BLOCKERS),
    description: cut(task.description, DESCRIPTION),
  }));
}

/** `withCompleted` false: completed tasks are left out, and so are the ones that nothing waits for any more. */
export function buildGraph(tasks: readonly GraphTask[], withCompleted: boolean): Graph {
  const byId = new Map(tasks.map((task) => [task.id, task]));
  const shown = tasks.filter((task) => withCompleted || task.state !== "completed");
  const nodes = new Map<string, GraphNode>();
  for (const task of [...shown].sort((a, b) => compareIds(a.id, b.id))) nodes.set(task.id, { task, id: task.id, before: [], after: [] });
  const edges: GraphEdge[] = [];
  for (const node of [...nodes.values()]) {
    for (const id of [...(node.task?.blockedBy ?? [])].sort(compareIds)) {
      const blocker = byId.get(id);
      if (blocker && !nodes.has(id)) continue;
      // Several may wait for the same missing one: it is shown once.
      const from = nodes.get(id) ?? { task: undefined, id, before: [], after: [] };
      nodes.set(id, from);
      from.after.push(node.id);
      node.before.push(id);
      edges.push({ from: id, to: node.id, cyclic: false, settled: blocker === undefined || blocker.state === "completed" });
    }
  }
  const component = components(nodes);
  const cycles: string[][] = [];
  const told = new Set<number>();
  for (const edge of edges) {
    const at = component.get(edge.from);
    if (at === undefined || at !== component.get(edge.to)) continue;
    edge.cyclic = true;
    if (told.has(at)) continue;
    told.add(at);
    const circle = circleThrough(edge, nodes, component);
    if (circle.some((id) => nodes.get(id)?.task?.state !== "completed")) cycles.push(circle);
  }
  return { nodes, edges, cycles };
}

/** Tarjan's strongly connected components, without recursion: a chain may be longer than a stack is deep. */
function components(nodes: ReadonlyMap<string, GraphNode>): Map<string, number> {
  const order = new Map<string, number>();
  const low = new Map<string, number>();
  const found = new Map<string, number>();
  const stack: string[] = [];
  let next = 0;
  for (const root of nodes.keys()) {
    if (order.has(root)) continue;
    const walk = [{ id: root, at: 0 }];
    while (walk.length > 0) {
      const step = walk[walk.length - 1];
      if (!step) break;
      const { id } = step;
      if (step.at === 0) {
        order.set(id, next);
        low.set(id, next);
        next += 1;
        stack.push(id);
      }
      const to = nodes.get(id)?.after[step.at];
      step.at += 1;
      if (to !== undefined) {
        if (!order.has(to)) walk.push({ id: to, at: 0 });
        else if (!found.has(to)) low.set(id, Math.min(low.get(id) ?? 0, order.get(to) ?? 0));
        continue;
      }
      if (low.get(id) === order.get(id)) {
        for (let member = stack.pop(); member !== undefined; member = stack.pop()) {
          found.set(member, order.get(id) ?? 0);
          if (member === id) break;
        }
      }
      walk.pop();
      const above = walk[walk.length - 1];
      if (above) low.set(above.id, Math.min(low.get(above.id) ?? 0, low.get(id) ?? 0));
    }
  }
  return found;
}

/** The shortest way from an edge's end back to its start, within their component. */
function circleThrough(edge: GraphEdge, nodes: ReadonlyMap<string, GraphNode>, component: ReadonlyMap<string, number>): string[] {
  const cameFrom = new Map<string, string | undefined>([[edge.to, undefined]]);
  const queue = [edge.to];
  for (const id of queue) {
    if (id === edge.from) break;
    for (const to of nodes.get(id)?.after ?? []) {
      if (cameFrom.has(to) || component.get(to) !== component.get(edge.from)) continue;
      cameFrom.set(to, id);
      queue.push(to);
    }
  }
  const circle: string[] = [];
  for (let id: string | undefined = edge.from; id !== undefined; id = cameFrom.get(id)) circle.unshift(id);
  return circle;
}

function cut(text: string | undefined, longest: number): string {
  const whole = text ?? "";
  return whole.length > longest ? `${Array.from(whole.slice(0, longest)).slice(0, -1).join("")}…` : whole;
}
