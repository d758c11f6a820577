/** What the extension and a graph's page say to each other. Everything is plain data. */

import type { Direction } from "./layout";
import type { GraphTask } from "./model";

export type ToGraph =
  /** All tasks as they are now. `notice`: what stands over the graph, empty for nothing. */
  | { type: "tasks"; listId: string; title: string; tasks: GraphTask[]; notice: string }
  /** What is shown may be old. */
  | { type: "notice"; text: string }
  /** Nothing can be shown. */
  | { type: "failed"; text: string };

export type FromGraph = { type: "ready" } | { type: "retry" } | { type: "open"; id: string };

/** What a page keeps over a reload of the window. Lengths are in the layout's own pixels. */
export interface GraphState {
  listId: string;
  title: string;
  scale?: number;
  centre?: [number, number];
  focus?: string | undefined;
  direction?: Direction;
  asList?: boolean;
  withCompleted?: boolean;
}
