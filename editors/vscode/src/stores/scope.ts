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
}

export function showsAll(scope: Scope): boolean {
  return scope.all || scope.folders.length === 0;
}

/** Whether a session is shown. A session's project is the folder that its log lies in. */
export function isShown(session: Pick<SessionInfo, "path" | "cwd">, scope: Scope): boolean {
  if (showsAll(scope)) return true;
  const project = session.path.split(/[/\\]/).at(-2) ?? projectId(session.cwd);
  return scope.folders.some((folder) => projectId(folder) === project);
}
