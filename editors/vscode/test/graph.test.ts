import assert from "node:assert/strict";
import { test } from "node:test";
import { type Layout, type LayoutRequest, layOut } from "../src/graph/layout";
import { buildGraph, graphTasks } from "../src/graph/model";
import type { Task } from "../src/protocol";

function tasks(...made: [id: string, status: string, ...blockers: string[]][]): Map<string, Task> {
  return new Map(made.map(([id, status, ...blockedBy]) => [id, { id, subject: `task ${id}`, status, blocks: [], blockedBy }]));
}

function graphOf(list: Map<string, Task>, withCompleted = true) {
  return buildGraph(graphTasks(list, Date.now()), withCompleted);
}

test("tasks stand by number, lines go from the blocker to what waits for it", () => {
  const graph = graphOf(tasks(["10", "pending", "9"], ["9", "completed"], ["2", "pending", "10", "9"]));
  assert.deepEqual([...graph.nodes.keys()], ["2", "9", "10"]);
  assert.deepEqual(
    graph.edges.map(({ from, to, settled }) => `${from} ${to} ${settled ? "settled" : "waits"}`),
    ["9 2 settled", "10 2 waits", "9 10 settled"],
  );
  assert.deepEqual(graph.nodes.get("9")?.after, ["2", "10"]);
  assert.deepEqual(graph.cycles, []);
});

test("who waits for what is not there gets a line from it, and does not wait", () => {
  const graph = graphOf(tasks(["1", "pending", "77", "77"], ["2", "pending", "77"]));
  assert.deepEqual([...graph.nodes.keys()], ["1", "2", "77"]);
  assert.equal(graph.nodes.get("77")?.task, undefined);
  assert.equal(graph.nodes.get("1")?.task?.state, "ready");
  assert.deepEqual(
    graph.edges.map(({ settled }) => settled),
    [true, true],
  );
});

test("a circle is told once, in the order of waiting; what merely hangs on it is none", () => {
  const graph = graphOf(
    tasks(
      ["1", "pending"],
      ["2", "pending", "1", "4"],
      ["3", "pending", "2"],
      ["4", "pending", "3"],
      ["5", "pending", "4"],
      ["6", "pending", "6"],
    ),
  );
  const circles = graph.cycles.map((circle) => {
    const start = circle.indexOf([...circle].sort()[0] ?? "");
    return [...circle.slice(start), ...circle.slice(0, start)].join(" ");
  });
  assert.deepEqual(circles, ["2 3 4", "6"]);
  assert.deepEqual(
    graph.edges.filter(({ cyclic }) => cyclic).map(({ from, to }) => `${from} ${to}`),
    ["4 2", "2 3", "3 4", "6 6"],
  );
});

test("a circle of completed tasks hinders nobody; a chain of 20,000 is followed to its end", () => {
  assert.deepEqual(graphOf(tasks(["1", "completed", "2"], ["2", "completed", "1"])).cycles, []);
  const chain = Array.from({ length: 20_000 }, (_, at): [string, string, ...string[]] => [
    String(at),
    "pending",
    String((at + 1) % 20_000),
  ]);
  assert.equal(graphOf(tasks(...chain)).cycles[0]?.length, 20_000);
});

test("without completed tasks, nothing leads to or from them", () => {
  const graph = graphOf(tasks(["1", "completed"], ["2", "pending", "1"], ["3", "pending", "2"]), false);
  assert.deepEqual([...graph.nodes.keys()], ["2", "3"]);
  assert.deepEqual(graph.nodes.get("2")?.before, []);
});

const box = { width: 200, height: 60, view: { width: 1000, height: 700 } };

function laid(count: number, edges: [number, number][], more: Partial<LayoutRequest> = {}): Layout {
  return layOut({ sequence: 1, count, edges, direction: undefined, ...box, ...more });
}

function assertApart(layout: Layout): void {
  for (let a = 0; a < layout.x.length; a += 1) {
    for (let b = 0; b < a; b += 1) {
      const apart =
        Math.abs((layout.x[a] ?? 0) - (layout.x[b] ?? 0)) >= box.width || Math.abs((layout.y[a] ?? 0) - (layout.y[b] ?? 0)) >= box.height;
      assert.ok(apart, `${a} lies on ${b}`);
    }
    assert.ok((layout.x[a] ?? -1) >= -0.01 && (layout.x[a] ?? 0) + box.width <= layout.width + 0.01);
    assert.ok((layout.y[a] ?? -1) >= -0.01 && (layout.y[a] ?? 0) + box.height <= layout.height + 0.01);
  }
}

test("boxes never lie on each other, whatever they depend on", () => {
  let seed = 7;
  const random = (below: number) => {
    seed = (seed * 16_807) % 2_147_483_647;
    return seed % below;
  };
  for (let round = 0; round < 25; round += 1) {
    const count = 1 + random(40);
    // Circles, tasks that wait for themselves, and the same dependency twice are among them.
    const edges = Array.from({ length: random(count * 2) }, (): [number, number] => [random(count), random(count)]);
    const layout = laid(count, edges);
    assertApart(layout);
    for (const [index, [from, to]] of edges.entries()) {
      const line = layout.lines[index] ?? [];
      assert.ok(line.every(Number.isFinite) && (from === to ? line.length === 0 : line.length >= 4), `${from} to ${to}: ${line}`);
    }
  }
});

test("a long chain goes down, a broad one to the right; a direction that was chosen is kept", () => {
  const chain = Array.from({ length: 9 }, (_, at): [number, number] => [at, at + 1]);
  assert.equal(laid(10, chain).direction, "down");
  const fan = Array.from({ length: 9 }, (_, at): [number, number] => [0, at + 1]);
  assert.equal(laid(10, fan).direction, "right");
  const kept = laid(10, chain, { direction: "right" });
  assert.equal(kept.direction, "right");
  assert.ok(chain.every(([from, to]) => (kept.x[from] ?? 0) + box.width < (kept.x[to] ?? 0)));
});

test("tasks that depend on nothing stand in a block about as wide as the view", () => {
  const layout = laid(60, []);
  assertApart(layout);
  assert.ok(layout.width / layout.height > 1 && layout.width / layout.height < 2.2, `${layout.width} x ${layout.height}`);
  assert.deepEqual(laid(0, []), { sequence: 1, direction: "right", width: 0, height: 0, x: [], y: [], lines: [] });
});
