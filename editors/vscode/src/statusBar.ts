import { commands, StatusBarAlignment, ThemeColor, window, workspace } from "vscode";
import type { Parts } from "./context";
import { countsText, listName } from "./model/tasks";
import { settings } from "./settings";

/** Open, in progress and done of the active list; what is wrong where the server does not run. */
export function registerStatusBar({ context, crew, board }: Parts): void {
  const item = window.createStatusBarItem("crewlog.counts", StatusBarAlignment.Left, 10);
  item.name = "Crewlog: tasks of the active list";
  const show = () => {
    const list = board.active();
    item.backgroundColor = undefined;
    item.command = "crewlog.tasks.focus";
    if (crew.state === "missing" || crew.state === "failed") {
      item.text = "$(warning) Crewlog";
      item.tooltip = crew.state === "missing" ? "The crewlog server was not found" : "The crewlog server does not run";
      item.accessibilityInformation = { label: item.tooltip };
      item.backgroundColor = new ThemeColor("statusBarItem.warningBackground");
    } else if (list !== undefined && list.counts.total > 0) {
      const { pending, inProgress, completed } = list.counts;
      item.text = `$(circle-large-outline) ${pending} $(play-circle) ${inProgress} $(pass) ${completed}`;
      item.tooltip = `Crewlog: ${listName(list)}\n${countsText(list.counts)}`;
      item.accessibilityInformation = { label: `Crewlog tasks: ${pending} open, ${inProgress} in progress, ${completed} done` };
    } else {
      item.hide();
      return;
    }
    if (settings().statusBar) item.show();
    else item.hide();
  };
  context.subscriptions.push(
    item,
    board.onDidChange(show),
    crew.onDidChangeState(show),
    workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("crewlog.statusBar")) show();
    }),
  );
  void commands.executeCommand("setContext", "crewlog.state", crew.state);
  show();
}
