/** The tasks as a table: for who reads better than looks, and where a graph is too much of it. */

import { element, icon, isolated, refocus } from "../../session/page/dom";
import { oneLine } from "../../session/visible";
import type { Graph, GraphNode } from "../model";
import { ids, LOOKS, stateOfNode, tooltip, words } from "./boxes";

const COLUMNS = ["Task", "State", "Owner", "Waits for", "Blocks"];

export class TaskTable {
  private readonly body = element("tbody");
  private readonly rows = new Map<string, { row: HTMLTableRowElement; reads: string }>();

  constructor(section: HTMLElement) {
    const heads = COLUMNS.map((name) => element("th", { scope: "col" }, name));
    section.append(element("table", {}, element("thead", {}, element("tr", {}, ...heads)), this.body));
  }

  /** Rows that read as before stay as they are: a selection, or the focus, stays in them. */
  show(graph: Graph): void {
    const nodes = [...graph.nodes.values()].filter((node) => node.task !== undefined);
    const wanted = new Set(nodes.map((node) => node.id));
    const focused = document.activeElement?.closest<HTMLElement>("[data-row]")?.dataset["row"];
    for (const [id, { row }] of this.rows) {
      if (wanted.has(id)) continue;
      row.remove();
      this.rows.delete(id);
    }
    let previous: Element | null = null;
    for (const node of nodes) {
      const reads = JSON.stringify(node);
      let shown = this.rows.get(node.id);
      if (shown?.reads !== reads) {
        const row = drawRow(node);
        shown?.row.replaceWith(row);
        shown = { row, reads };
        this.rows.set(node.id, shown);
      }
      const after: Element | null = previous ? previous.nextElementSibling : this.body.firstElementChild;
      if (after !== shown.row) this.body.insertBefore(shown.row, after);
      previous = shown.row;
    }
    if (focused !== undefined && document.activeElement === document.body)
      refocus(() => this.rows.get(focused)?.row.querySelector("button"));
  }

  /** Whether there was such a row. */
  focus(id: string | undefined): boolean {
    const button = (id === undefined ? undefined : this.rows.get(id)?.row)?.querySelector("button") ?? this.body.querySelector("button");
    button?.focus();
    return button !== null;
  }
}

function drawRow(node: GraphNode): HTMLTableRowElement {
  const { task } = node;
  const state = stateOfNode(node);
  const open = element(
    "button",
    { type: "button", class: "row-open", "data-id": node.id, title: tooltip(node) },
    isolated(`#${oneLine(node.id, 40)}`, "box-id"),
    isolated(words(task).slice(0, 300)),
  );
  const stateCell = element("span", { class: `row-state state-${state}` }, icon(LOOKS[state].icon), LOOKS[state].name);
  return element(
    "tr",
    { "data-row": node.id },
    element("th", { scope: "row" }, open),
    element("td", {}, stateCell),
    element("td", {}, task?.owner ? isolated(oneLine(task.owner, 60)) : ""),
    element("td", {}, isolated(ids(task?.waitsFor ?? []))),
    element("td", {}, isolated(ids(node.after))),
  );
}
