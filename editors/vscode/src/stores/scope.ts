import { realpathSync } from "node:fs";
import type { SessionInfo } from "../protocol";

/** The name of a project's folder in the home: as the server makes it of a working directory. */
export function projectId(folder: string): string {
  return folder.replace(/[^A-Za-z0-9]+/g, "-");
}

/** Which projects a window shows. */
export interface Scope {
  /** The open folders; with none, or with `all`, every project is shown. */
  folders: string[];
  all: boolean;
  /** The projects of the folders, by `projectId`: a folder that was opened through a link has one under either name. */
  projects: ReadonlySet<string>;
}

export function makeScope(folders: string[], all: boolean): Scope {
  return { folders, all, projects: new Set(folders.flatMap((folder) => [projectId(folder), projectId(withoutLinks(folder))])) };
}

export function showsAll(scope: Scope): boolean {
  return scope.all || scope.folders.length === 0;
}

/** Whether a session is shown. A session's project is the folder that its log lies in. */
export function isShown(session: Pick<SessionInfo, "path" | "cwd">, scope: Scope): boolean {
  return showsAll(scope) || scope.projects.has(session.path.split(/[/\\]/).at(-2) ?? projectId(session.cwd));
}

function withoutLinks(folder: string): string {
  try {
    return realpathSync.native(folder);
  } catch {
    return folder; // it was moved away: what is known of it is shown all the same
  }
}
