/**
 * Where the boxes and lines of a graph stand. Tasks that depend on each other are laid out by dagre, each group of them on its own; the groups are set in rows, and tasks that depend on nothing stand in a block beneath. Pure: no VS Code, no browser.
 */

import { Graph, layout } from "@dagrejs/dagre";

/** The way the graph goes, from what comes first to what waits for it. */
export type Direction = "right" | "down";

export interface LayoutRequest {
  sequence: number;
  /** How many boxes there are; they are named by their index from here on. */
  count: number;
  /** Blocker and waiting task. */
  edges: [number, number][];
  /** Of a box, in pixels. */
  width: number;
  height: number;
  /** Of what it is looked at in. */
  view: { width: number; height: number };
  /** Undefined: the one in which more of it fits into the view. */
  direction: Direction | undefined;
}

export interface Layout {
  sequence: number;
  direction: Direction;
  width: number;
  height: number;
  /** Left and top of each box. */
  x: number[];
  y: number[];
  /** For each edge the points that its line goes by, x and y in turn; none for a task that waits for itself. */
  lines: number[][];
}

/** Between two boxes side by side, between the columns or rows that lines go through, and between two groups. */
const GAP = 18;
const RANK_GAP: Record<Direction, number> = { right: 64, down: 44 };
const GROUP_GAP = 48;
/** A group of more boxes is ranked by the quicker way: the better one takes seconds for some hundred. */
const MANY = 120;
interface Group {
  members: number[];
  edges: number[];
  width: number;
  height: number;
}

export function layOut(request: LayoutRequest): Layout {
  const { sequence, count, width, height, view } = request;
  const groups = grouped(request);
  const alone = groups.filter((group) => group.edges.length === 0).flatMap((group) => group.members);
  const joined = groups.filter((group) => group.edges.length > 0);
  const direction = request.direction ?? fittingDirection(joined, request);
  const result: Layout = {
    sequence,
    direction,
    width: 0,
    height: 0,
    x: Array(count).fill(0),
    y: Array(count).fill(0),
    lines: request.edges.map(() => []),
  };
  for (const group of joined) layOutGroup(group, request, result);
  joined.sort((a, b) => b.height - a.height || (a.members[0] ?? 0) - (b.members[0] ?? 0));

  const aspect = Math.min(3, Math.max(0.6, view.width / Math.max(1, view.height)));
  const area = joined.reduce((sum, group) => sum + (group.width + GROUP_GAP) * (group.height + GROUP_GAP), 0);
  const target = Math.max(Math.sqrt(area * aspect), ...joined.map((group) => group.width));
  let [left, top, rowHeight] = [0, 0, 0];
  for (const group of joined) {
    if (left > 0 && left + group.width > target) {
      top += rowHeight + GROUP_GAP;
      [left, rowHeight] = [0, 0];
    }
    shift(group, left, top, result);
    result.width = Math.max(result.width, left + group.width);
    left += group.width + GROUP_GAP;
    rowHeight = Math.max(rowHeight, group.height);
  }
  top += rowHeight;

  if (alone.length > 0) {
    if (joined.length > 0) top += GROUP_GAP;
    const [across, down] = [width + GAP, height + GAP];
    const square = Math.ceil(Math.sqrt((alone.length * aspect * down) / across));
    const columns = Math.min(alone.length, Math.max(square, Math.floor((result.width + GAP) / across)));
    for (const [at, node] of alone.entries()) {
      result.x[node] = (at % columns) * across;
      result.y[node] = top + Math.floor(at / columns) * down;
    }
    result.width = Math.max(result.width, columns * across - GAP);
    top += Math.ceil(alone.length / columns) * down - GAP;
  }
  result.height = top;
  return result;
}

/** The boxes that hang together, in the order of their first one. */
function grouped({ count, edges }: LayoutRequest): Group[] {
  const parent = Array.from({ length: count }, (_, index) => index);
  const root = (index: number): number => {
    let at = index;
    while (parent[at] !== at) {
      parent[at] = parent[parent[at] ?? at] ?? at;
      at = parent[at] ?? at;
    }
    return at;
  };
  for (const [from, to] of edges) parent[Math.max(root(from), root(to))] = Math.min(root(from), root(to));
  const groups = new Map<number, Group>();
  for (let index = 0; index < count; index += 1) {
    const at = root(index);
    const group = groups.get(at) ?? { members: [], edges: [], width: 0, height: 0 };
    group.members.push(index);
    groups.set(at, group);
  }
  for (const [index, [from, to]] of edges.entries()) if (from !== to) groups.get(root(from))?.edges.push(index);
  return [...groups.values()];
}

/** As many columns as the longest chain has tasks, as many rows as there are tasks at one distance from the beginning: whichever way fits better. */
function fittingDirection(groups: readonly Group[], { edges, width, height, view }: LayoutRequest): Direction {
  const largest = groups.reduce<Group | undefined>(
    (best, group) => (best && best.members.length >= group.members.length ? best : group),
    undefined,
  );
  if (!largest) return "right";
  const after = new Map<number, number[]>();
  const open = new Map(largest.members.map((node) => [node, 0]));
  for (const index of largest.edges) {
    const [from, to] = edges[index] ?? [0, 0];
    after.set(from, [...(after.get(from) ?? []), to]);
    open.set(to, (open.get(to) ?? 0) + 1);
  }
  // What stands in a circle is never reached; a rough number will do.
  const rank = new Map(largest.members.filter((node) => open.get(node) === 0).map((node) => [node, 0]));
  const sizes: number[] = [];
  for (const [node, at] of rank) {
    sizes[at] = (sizes[at] ?? 0) + 1;
    for (const next of after.get(node) ?? []) {
      open.set(next, (open.get(next) ?? 0) - 1);
      if (open.get(next) === 0) rank.set(next, at + 1);
    }
  }
  const [deep, broad] = [Math.max(1, sizes.length), Math.max(1, ...sizes)];
  const right = Math.min(view.width / (deep * (width + RANK_GAP.right)), view.height / (broad * (height + GAP)));
  const down = Math.min(view.width / (broad * (width + GAP)), view.height / (deep * (height + RANK_GAP.down)));
  return down > right ? "down" : "right";
}

function layOutGroup(group: Group, { edges, width, height }: LayoutRequest, result: Layout): void {
  const graph = new Graph({ multigraph: true });
  const ranker = group.members.length > MANY ? "tight-tree" : "network-simplex";
  const { direction } = result;
  graph.setGraph({ rankdir: direction === "right" ? "LR" : "TB", nodesep: GAP, edgesep: 12, ranksep: RANK_GAP[direction], ranker });
  for (const node of group.members) graph.setNode(String(node), { width, height });
  for (const index of group.edges) {
    const [from, to] = edges[index] ?? [0, 0];
    graph.setEdge(String(from), String(to), {}, String(index));
  }
  layout(graph, { disableOptimalOrderHeuristic: group.members.length > MANY });

  let [left, top, right, bottom] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY];
  const reach = (x: number, y: number) => {
    [left, top, right, bottom] = [Math.min(left, x), Math.min(top, y), Math.max(right, x), Math.max(bottom, y)];
  };
  for (const node of group.members) {
    const { x, y } = graph.node(String(node)) as { x: number; y: number };
    result.x[node] = x - width / 2;
    result.y[node] = y - height / 2;
    reach(x - width / 2, y - height / 2);
    reach(x + width / 2, y + height / 2);
  }
  for (const index of group.edges) {
    const [from, to] = edges[index] ?? [0, 0];
    const { points } = graph.edge(String(from), String(to), String(index)) as { points: { x: number; y: number }[] };
    for (const { x, y } of points) reach(x, y);
    result.lines[index] = points.flatMap(({ x, y }) => [x, y]);
  }
  shift(group, -left, -top, result);
  group.width = right - left;
  group.height = bottom - top;
}

function shift(group: Group, byX: number, byY: number, result: Layout): void {
  for (const node of group.members) {
    result.x[node] = (result.x[node] ?? 0) + byX;
    result.y[node] = (result.y[node] ?? 0) + byY;
  }
  for (const index of group.edges) {
    result.lines[index] = (result.lines[index] ?? []).map((value, at) => value + (at % 2 === 0 ? byX : byY));
  }
}
