import assert from "node:assert/strict";
import { test } from "node:test";
import { newestFirst } from "../src/model/order";
import type { Row } from "../src/model/row";
import { type Element, Elements } from "../src/views/elements";

const leaf = (key: string, label = key): Row => ({ key, label });
const group = (key: string, below: Row[], label = key): Row => ({ key, label, children: () => below });
const names = (elements: readonly (Element | "root")[]) => elements.map((element) => (element === "root" ? "root" : element.key));

/** What VS Code does when it is given everything: it asks for the looks and for what is below. */
function ask(elements: Elements, of: Element | "root" = "root"): Element[] {
  const below = elements.below(of);
  for (const element of below) elements.look(element);
  for (const element of below) if (element.row.children !== undefined) ask(elements, element);
  return below;
}

function shown(...rows: Row[]): Elements {
  const elements = new Elements();
  elements.take(rows);
  ask(elements);
  return elements;
}

test("where nothing changed, nothing is told", () => {
  const elements = shown(group("g", [leaf("a"), leaf("b")]));
  const changes = elements.take([group("g", [leaf("a"), leaf("b")])]);
  assert.deepEqual(changes, { looks: [], below: [] });
});

test("a row that looks different is told of alone, as the object that VS Code knows, with the row as it is now", () => {
  const elements = shown(group("g", [leaf("a"), leaf("b")]));
  const [g] = elements.below("root");
  assert.ok(g);
  const known = g.children?.[1];
  const changes = elements.take([group("g", [leaf("a"), leaf("b", "other")])]);
  assert.deepEqual([names(changes.looks), changes.below], [["b"], []]);
  assert.equal(changes.looks[0], known);
  assert.equal(known?.row.label, "other");
  elements.told(changes);
  assert.deepEqual(elements.take([group("g", [leaf("a"), leaf("b", "other")])]).looks, [], "it is told of once");
});

test("rows that come, go or change places are told of where they stand, and nowhere else", () => {
  for (const now of [[leaf("a")], [leaf("a"), leaf("b"), leaf("c")], [leaf("b"), leaf("a")]]) {
    const elements = shown(group("g", [leaf("a"), leaf("b")]), group("h", [leaf("x")]));
    const changes = elements.take([group("g", now), group("h", [leaf("x")])]);
    assert.deepEqual([changes.looks, names(changes.below)], [[], ["g"]]);
  }
  assert.deepEqual(names(shown(leaf("a")).take([leaf("a"), leaf("b")]).below), ["root"]);
});

test("what is told of later is still known then, and what is asked for anew keeps its objects", () => {
  const elements = shown(group("g", [leaf("a"), leaf("b")]));
  const [g] = elements.below("root");
  assert.ok(g);
  const a = elements.below(g)[0];
  const rows = [group("g", [leaf("new"), leaf("a")])];
  assert.deepEqual(names(elements.take(rows).below), ["g"]);
  assert.deepEqual(names(elements.take(rows).below), ["g"], "until it is told");
  elements.told(elements.take(rows));
  assert.deepEqual(elements.take(rows).below, []);
  elements.look(g);
  assert.deepEqual(names(elements.below(g)), ["new", "a"]);
  assert.equal(elements.below(g)[1], a);
});

test("a row that moves is never in two places for VS Code", () => {
  const elements = shown(group("g", [leaf("a"), leaf("b")]), group("h", []));
  const [g, h] = elements.below("root");
  assert.ok(g && h);
  ask(elements, g);
  ask(elements, h);
  const rows = [group("g", [leaf("a")]), group("h", [leaf("b")])];
  assert.deepEqual(names(elements.take(rows).below), ["g", "h"]);
  assert.deepEqual(names(elements.below(h)), [], "it still stands in the other group");
  assert.ok(elements.lacks(h));
  elements.look(g);
  elements.look(h);
  assert.deepEqual([names(elements.below(h)), names(elements.below(g))], [["b"], ["a"]]);
  assert.ok(!elements.lacks(h));
});

test("of several rows with one key, the first is shown", () => {
  assert.deepEqual(names(shown(leaf("a", "one"), leaf("a", "two")).below("root")), ["a"]);
});

test("what is being worked on keeps its place, the rest stands by its last change", () => {
  const now = Date.parse("2026-03-04T12:00:00Z");
  const ago = (seconds: number) => new Date(now - seconds * 1000).toISOString();
  const order = (...items: [string, number, number][]) =>
    newestFirst(items, ([id, changed, begun]) => ({ id, changed: ago(changed), begun: ago(begun) }), now).map(([id]) => id);
  assert.deepEqual(order(["old", 300, 9000], ["busy", 1, 5000], ["newer", 20, 400], ["older", 3600, 3700]), [
    "newer",
    "busy",
    "old",
    "older",
  ]);
  assert.deepEqual(order(["busy", 20, 5000], ["newer", 1, 400]), ["newer", "busy"], "whichever of the two wrote last");
});
