// Which crewlog command to start.
import { accessSync, constants, existsSync, statSync } from "node:fs";
import { basename, delimiter, dirname, isAbsolute, join, relative, sep } from "node:path";

/** How to start a server, and where that was found, in words for the log. */
export interface Command {
  command: string;
  args: string[];
  origin: string;
}

/** Nothing was found; `problem` says what was looked at. */
export class NoServer extends Error {
  constructor(
    problem: string,
    /** Whether a setting names something that is not there, rather than that nothing was found at all. */
    readonly setting: boolean,
  ) {
    super(problem);
  }
}

export interface Places {
  /** The setting, "" when it is not set. */
  setting: string;
  /** The interpreter of the selected Python environment; undefined where none is selected, or where it must not be used. */
  python: string | undefined;
  /** The environment variable PATH. */
  path: string;
  /** Folders from which nothing is started: those of a workspace that is not trusted. */
  barred: string[];
  windows?: boolean;
}

/** The setting, else the command beside the selected Python, else the one on PATH. Throws `NoServer`. */
export function locate(places: Places): Command {
  const names = places.windows ? ["crewlog.exe"] : ["crewlog"];
  if (places.setting !== "") {
    if (!isAbsolute(places.setting)) {
      throw new NoServer(`The setting crewlog.server.path is "${places.setting}": it must be an absolute path.`, true);
    }
    if (!isProgram(places.setting)) {
      throw new NoServer(`The setting crewlog.server.path names ${places.setting}: there is no program there.`, true);
    }
    return { command: places.setting, args: ["serve"], origin: "the setting crewlog.server.path" };
  }
  if (places.python !== undefined && isAbsolute(places.python) && !isBarred(places.python, places.barred)) {
    const found = names.map((name) => join(dirname(places.python ?? ""), name)).find(isProgram);
    if (found !== undefined) return { command: found, args: ["serve"], origin: `the Python environment of ${places.python}` };
  }
  for (const folder of places.path.split(delimiter)) {
    if (!isAbsolute(folder) || isBarred(folder, places.barred)) continue;
    const found = names.map((name) => join(folder, name)).find(isProgram);
    if (found !== undefined)
      return { command: found, args: ["serve"], origin: `PATH (${basename(dirname(folder))}${sep}${basename(folder)})` };
  }
  throw new NoServer(
    "The crewlog server was not found: not in the settings, not in the selected Python environment, not on PATH. Install it with pip, or set its path.",
    false,
  );
}

function isBarred(path: string, folders: string[]): boolean {
  return folders.some((folder) => {
    const way = relative(folder, path);
    return way === "" || (!way.startsWith("..") && !isAbsolute(way));
  });
}

function isProgram(path: string): boolean {
  try {
    if (!existsSync(path) || !statSync(path).isFile()) return false;
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false; // not ours to start
  }
}
