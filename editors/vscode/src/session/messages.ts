/** What the extension and a session's page say to each other. Everything is plain data. */

import type { Branch, Break } from "../protocol";
import type { PageEntry } from "./shrink";

/** The session as the page's head shows it. */
export interface PageSession {
  id: string;
  name: string;
  cwd: string;
  updated: string;
  /** It is no session but the transcript of a member of a team: nothing can be forked or gone back to. */
  transcript?: TranscriptOf;
}

export interface TranscriptOf {
  listId: string;
  agent: string;
}

export type ToPage =
  /** Everything anew. `viewing`: the leaf of the branch that is shown, null for the present one, which is followed. */
  | {
      type: "reset";
      session: PageSession;
      entries: PageEntry[];
      hasMore: boolean;
      total: number;
      viewing: string | null;
      broken: Break | null;
      branches: Branch[];
      notice: string;
      scrollTo: string | null;
    }
  | { type: "older"; entries: PageEntry[]; hasMore: boolean; total: number; broken: Break | null }
  | { type: "newer"; entries: PageEntry[]; total: number }
  | { type: "entry"; entry: PageEntry }
  | { type: "about"; session: PageSession; branches: Branch[] }
  /** What stands over the page until the next one; empty takes it away. */
  | { type: "notice"; text: string; restore?: boolean }
  /** Nothing can be shown. */
  | { type: "failed"; text: string; restore?: boolean; what?: "transcript" };

export type FromPage =
  /** The page is there, with the state that it had when it was closed. */
  | { type: "ready"; viewing?: string | null; scrollTo?: string | null }
  | { type: "older" }
  | { type: "all" }
  | { type: "load"; entryId: string }
  | { type: "branch"; leafId: string | null }
  | { type: "copyText" | "copyId" | "fork" | "rewind" | "openWhole"; entryId: string }
  | { type: "restore" }
  | { type: "retry" };
