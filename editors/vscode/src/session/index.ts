import { type ExtensionContext, window } from "vscode";
import type { Crew } from "../crew";

export interface SessionPages {
  /** Opens the session's page, or shows the one that is open. `title`: until the session itself says; `entryId`: where to scroll. */
  open(sessionId: string, title?: string, entryId?: string): void;
}

/** To be replaced by the session page. */
export function registerSessionPages(_context: ExtensionContext, _crew: Crew): SessionPages {
  return { open: (sessionId) => void window.showInformationMessage(`Session ${sessionId}`) };
}
