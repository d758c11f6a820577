import { ConfigurationTarget, commands, env, window, workspace } from "vscode";
import type { Parts } from "../context";
import { Documents } from "../documents";
import type { Views } from "../views";
import { callOf, sayLost } from "./pick";
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
    commands.registerCommand("crewlog.transcript.open", (...args: unknown[]) => {
      const call = callOf(args);
      if (call.kind === "lost") sayLost();
      const { listId, agent } = call.kind === "on" ? call.target : {};
      if (listId !== undefined && agent !== undefined) pages.openTranscript(listId, agent);
    }),
    commands.registerCommand("crewlog.copyId", async (...args: unknown[]) => {
      const call = callOf(args);
      if (call.kind === "lost") sayLost();
      const id = call.kind === "on" ? call.target.copy : undefined;
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
