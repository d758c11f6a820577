import type { ExtensionContext } from "vscode";
import type { Crew } from "./crew";
import type { Graphs } from "./graph";
import type { Reporter } from "./report";
import type { SessionPages } from "./session";
import type { Board } from "./stores/board";
import type { Plans } from "./stores/plans";
import type { Sessions } from "./stores/sessions";

/** What views and commands share. */
export interface Parts {
  context: ExtensionContext;
  crew: Crew;
  board: Board;
  sessions: Sessions;
  plans: Plans;
  report: Reporter;
  pages: SessionPages;
  graphs: Graphs;
}
