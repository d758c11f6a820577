/** One row of a view, without VS Code: what `views/rowTree.ts` makes a tree item of. */
export interface Row {
  /** Stays the same while what is shown changes, so that selection and expansion stay. */
  key: string;
  label: string;
  description?: string;
  /** Plain text. */
  tooltip?: string;
  /** For a screen reader, where label and description do not say it. */
  spoken?: string;
  /** A name of VS Code's icons, or an SVG document for a colour of its own. */
  icon?: { name: string; color?: string } | { svg: string };
  /** Words that `when` clauses look for. */
  context?: string[];
  /** What a click runs: a command of this extension, with these arguments. */
  run?: { command: string; title: string; args: unknown[] };
  expanded?: boolean;
  children?: () => Row[];
  /** What commands on this row are about. */
  target?: Target;
}

export interface TaskTarget {
  listId: string;
  id: string;
  /** For a row that stands for a blocker: the task that waits for it. */
  waiting?: string;
}

export interface Target {
  task?: TaskTarget;
  listId?: string;
  sessionId?: string;
  plan?: string;
  agent?: string;
  /** What "Copy Id" copies. */
  copy?: string;
}
