import { ConfigurationTarget, commands, env, window, workspace } from "vscode";
import type { Parts } from "../context";
import { Documents } from "../documents";
import type { Views } from "../views";
import { type Argument, targetOf } from "./pick";
import { registerPlanCommands } from "./plans";
import { registerSessionCommands } from "./sessions";
import { registerTaskCommands } from "./tasks";

export function registerCommands(parts: Parts, views: Views): void {
  const { context, board, sessions, plans, report, pages } = parts;
  const documents = new Documents(parts);
  context.subscriptions.push(documents);
  registerTaskCommands(parts, views, documents);
  registerSessionCommands(parts, views);
  registerPlanCommands(parts, views);
  context.subscriptions.push(
    commands.registerCommand("crewlog.transcript.open", (argument: Argument) => {
      const target = targetOf(argument);
      if (target?.listId !== undefined && target.agent !== undefined) pages.openTranscript(target.listId, target.agent);
    }),
    commands.registerCommand("crewlog.copyId", async (argument: Argument) => {
      const id = targetOf(argument)?.copy;
      if (id === undefined) return;
      await env.clipboard.writeText(id);
      window.setStatusBarMessage("Copied", 2000);
    }),
    commands.registerCommand("crewlog.refresh", () =>
      report.during("Reading everything anew", Promise.all([board.refresh(), sessions.refresh(), plans.refresh()])),
    ),
    commands.registerCommand("crewlog.server.setPath", async () => {
      const picked = await window.showOpenDialog({
        title: "The crewlog command",
        openLabel: "Use This",
        canSelectFiles: true,
        canSelectMany: false,
      });
      const path = picked?.[0]?.fsPath;
      if (path !== undefined) await workspace.getConfiguration("crewlog").update("server.path", path, ConfigurationTarget.Global);
    }),
  );
}
