import { type ExtensionContext, window } from "vscode";
import type { Crew } from "../crew";

export interface Graphs {
  /** Opens the dependency graph of a task list, or shows the one that is open. */
  open(listId: string, title?: string): void;
}

/** To be replaced by the graph. A click on a task runs the command `crewlog.task.open` with `{ listId, id }`. */
export function registerGraph(_context: ExtensionContext, _crew: Crew): Graphs {
  return { open: (listId) => void window.showInformationMessage(`Graph of ${listId}`) };
}
