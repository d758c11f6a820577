import { userInfo } from "node:os";
import { workspace } from "vscode";

export interface Settings {
  path: string;
  home: string;
  durability: "power" | "process";
  owner: string;
  allProjects: boolean;
  statusBar: boolean;
}

/** What the user set. `path`, `home` and `durability` have the scope `machine`: VS Code never takes them from a workspace. */
export function settings(): Settings {
  const all = workspace.getConfiguration("crewlog");
  return {
    path: all.get<string>("server.path", "").trim(),
    home: all.get<string>("server.home", "").trim(),
    durability: all.get<"power" | "process">("server.durability", "power"),
    owner: all.get<string>("owner", "").trim() || userName(),
    allProjects: all.get<boolean>("allProjects", false),
    statusBar: all.get<boolean>("statusBar.visible", true),
  };
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return "me"; // a container may run under a user id without a name
  }
}
