/** What the graph and the list show of a task. */

import { element, type IconName, icon, isolated } from "../../session/page/dom";
import { oneLine, plainText } from "../../session/visible";
import type { GraphNode, GraphTask } from "../model";

export type BoxState = GraphTask["state"] | "missing";

interface Look {
  /** As the legend names it. */
  name: string;
  icon: IconName;
}

/** In the order of the legend. */
export const LOOKS: Record<BoxState, Look> = {
  inProgress: { name: "in progress", icon: "start" },
  claimed: { name: "claimed", icon: "user" },
  ready: { name: "open", icon: "ready" },
  blocked: { name: "blocked", icon: "blocked" },
  lapsed: { name: "lapsed", icon: "warning" },
  completed: { name: "done", icon: "completed" },
  unknown: { name: "unknown status", icon: "unanswered" },
  missing: { name: "not there", icon: "missing" },
};

export function stateOfNode(node: GraphNode): BoxState {
  return node.task?.state ?? "missing";
}

/** What the box of a task says: what is being done while it is, else what is to be done. */
export function words(task: GraphTask | undefined): string {
  if (task === undefined) return "This task is not there (any more)";
  return (task.state === "inProgress" && task.doing) || task.subject || "(no subject)";
}

/** All that the box shows by place and colour, for those who do not see it. */
export function spoken(node: GraphNode): string {
  const { task } = node;
  const parts = [`Task ${oneLine(node.id, 40)}: ${oneLine(words(task), 200)}`];
  if (task !== undefined) parts.push(LOOKS[task.state].name);
  if (task?.owner) parts.push(`owner ${oneLine(task.owner, 60)}`);
  if (task !== undefined && task.waitsFor.length > 0) parts.push(`waits for ${ids(task.waitsFor)}`);
  const settled = task === undefined ? [] : node.before.filter((id) => !task.waitsFor.includes(id));
  if (settled.length > 0) parts.push(`came after ${ids(settled)}`);
  if (node.after.length > 0) parts.push(`blocks ${ids(node.after)}`);
  return parts.join(", ");
}

export function tooltip(node: GraphNode): string {
  const { task } = node;
  const told = [`#${oneLine(node.id, 40)} ${oneLine(words(task), 300)}`];
  if (task === undefined) return told.join("\n");
  if (task.doing && words(task) !== task.subject) told.push(oneLine(task.subject, 300));
  told.push([LOOKS[task.state].name, task.owner && `owner ${oneLine(task.owner, 100)}`].filter(Boolean).join(" · "));
  if (task.waitsFor.length > 0) told.push(`Waits for ${ids(task.waitsFor)}`);
  if (task.description) told.push("", plainText(task.description));
  return told.join("\n");
}

export function ids(list: readonly string[], longest = 12): string {
  const shown = list.slice(0, longest).map((id) => `#${oneLine(id, 40)}`);
  return list.length > longest ? `${shown.join(", ")} and ${list.length - longest} more` : shown.join(", ");
}

/** The box in the graph. Its place is set by who asks. */
export function drawBox(node: GraphNode, cyclic: boolean): HTMLButtonElement {
  const state = stateOfNode(node);
  const { task } = node;
  const head = element("span", { class: "box-head" }, icon(LOOKS[state].icon), isolated(`#${oneLine(node.id, 12)}`, "box-id"));
  if (task?.owner) head.append(isolated(oneLine(task.owner, 40), "box-owner"));
  const box = element(
    "button",
    {
      type: "button",
      class: `box state-${state}${cyclic ? " cyclic" : ""}`,
      "data-id": node.id,
      tabindex: -1,
      title: tooltip(node),
      "aria-label": cyclic ? `${spoken(node)}, in a circle` : spoken(node),
      "aria-disabled": task === undefined ? "true" : undefined,
    },
    head,
  );
  const subject = isolated(words(task).slice(0, 300), "box-words");
  subject.dir = "auto";
  box.append(subject);
  return box;
}
