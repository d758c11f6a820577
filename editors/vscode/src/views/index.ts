import { commands, type TreeView, window, workspace } from "vscode";
import type { Parts } from "../context";
import type { Crew } from "../crew";
import { planRows } from "../model/plans";
import { sessionRows } from "../model/sessions";
import { filterText, isFiltered, nextChange, type TaskFilter, taskRows } from "../model/tasks";
import { teamRows } from "../model/team";
import { untilMidnight } from "../model/time";
import { settings } from "../settings";
import { count } from "../text";
import type { Element } from "./elements";
import { RowTree } from "./rowTree";
import { TaskDrop } from "./taskDrop";

export interface Views {
  filter: TaskFilter;
  setFilter(filter: TaskFilter): void;
  tasks: TreeView<Element>;
  sessions: TreeView<Element>;
  plans: TreeView<Element>;
  team: TreeView<Element>;
}

/** "5 min" ago must not stand there for an hour. */
const AGES_MS = 60_000;
/** Nobody tells of transcripts that grow. */
const TRANSCRIPTS_MS = 5000;
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

export function registerViews(parts: Parts): Views {
  const { context, crew, board, sessions, plans, report } = parts;
  let filter: TaskFilter = {};
  let wake: NodeJS.Timeout | undefined;

  const failed = report.viewFailed;
  const tasksTree = new RowTree({
    rows: async () => {
      await firstRead(crew, board);
      if (isFiltered(filter)) await Promise.all(board.lists().map(({ listId }) => board.load(listId)));
      const lists = board.lists().filter(({ counts }) => counts.total > 0);
      if (lists.length === 1 && lists[0] !== undefined) await board.load(lists[0].listId);
      return taskRows(lists, board.active()?.listId, filter, settings().owner, Date.now());
    },
    open: ({ context, target }) => {
      if (target?.listId === undefined || !context?.includes("list")) return undefined;
      return board.list(target.listId)?.tasks === undefined ? board.load(target.listId) : undefined;
    },
    click: "crewlog.tasks.click",
    failed,
  });
  const sessionsTree = new RowTree({
    rows: async () => {
      await firstRead(crew, sessions);
      return sessionRows(sessions.all(), sessions.facts, sessions.skipped, sessions.more, showsProjects(), Date.now());
    },
    click: "crewlog.sessions.click",
    failed,
  });
  const plansTree = new RowTree({
    rows: async () => {
      await firstRead(crew, plans);
      return planRows(plans.all, Date.now());
    },
    click: "crewlog.plans.click",
    failed,
  });
  const teamTree = new RowTree({
    rows: async () => {
      await firstRead(crew, board);
      return teamRows(board.teams(), Date.now());
    },
    click: "crewlog.team.click",
    failed,
  });

  const tasks = window.createTreeView("crewlog.tasks", {
    treeDataProvider: tasksTree,
    showCollapseAll: true,
    dragAndDropController: new TaskDrop(parts),
  });
  const sessionsView = window.createTreeView("crewlog.sessions", { treeDataProvider: sessionsTree, showCollapseAll: true });
  const plansView = window.createTreeView("crewlog.plans", { treeDataProvider: plansTree });
  const team = window.createTreeView("crewlog.team", { treeDataProvider: teamTree });

  const contexts = new Map<string, unknown>();
  const setContext = (key: string, value: unknown) => {
    if (contexts.get(key) === value) return;
    contexts.set(key, value);
    void commands.executeCommand("setContext", key, value);
  };
  const showBoard = () => {
    setContext("crewlog.tasks.loaded", board.loaded);
    tasksTree.refresh();
    teamTree.refresh();
    const open = board.lists().reduce((sum, { counts }) => sum + counts.pending + counts.inProgress, 0);
    tasks.badge = open > 0 ? { value: open, tooltip: count(open, "open task") } : undefined;
    setContext(
      "crewlog.tasks.any",
      board.lists().some(({ counts }) => counts.total > 0),
    );
    clearTimeout(wake);
    const now = Date.now();
    const next = nextChange(board.lists(), now);
    if (Number.isFinite(next)) wake = setTimeout(showBoard, Math.min(Math.max(next - now, 0) + 50, LONGEST_TIMEOUT_MS));
  };
  const showSessions = () => {
    setContext("crewlog.sessions.loaded", sessions.loaded);
    sessionsTree.refresh();
    setContext("crewlog.sessions.any", sessions.all().length > 0);
  };
  const showPlans = () => {
    setContext("crewlog.plans.loaded", plans.loaded);
    plansTree.refresh();
    setContext("crewlog.plans.any", plans.all.length > 0);
  };
  const showAges = setInterval(() => {
    sessionsTree.refresh();
    plansTree.refresh();
  }, AGES_MS);
  const lookAtTranscripts = () => {
    if (team.visible && crew.state === "ready") void board.lookAtTranscripts();
  };
  const transcripts = setInterval(lookAtTranscripts, TRANSCRIPTS_MS);
  let midnight: NodeJS.Timeout | undefined;
  const atMidnight = () => {
    midnight = setTimeout(() => {
      showSessions();
      atMidnight();
    }, untilMidnight(Date.now()) + 1000);
  };
  atMidnight();

  const tellState = () => {
    const stale = crew.state === "failed" || crew.state === "missing";
    // an empty view says by its welcome what to do; a message would stand in its place
    const tell = (view: TreeView<Element>, empty: boolean) => {
      view.message = stale && !empty ? "The server does not run: what is shown may be old." : undefined;
    };
    tell(
      tasks,
      board.lists().every(({ counts }) => counts.total === 0),
    );
    tell(sessionsView, sessions.all().length === 0);
    tell(plansView, plans.all.length === 0);
    tell(team, teamRows(board.teams(), Date.now()).length === 0);
  };

  context.subscriptions.push(
    tasks,
    sessionsView,
    plansView,
    team,
    tasksTree,
    sessionsTree,
    plansTree,
    teamTree,
    ...[
      { id: "crewlog.tasks.click", view: tasks },
      { id: "crewlog.sessions.click", view: sessionsView },
      { id: "crewlog.plans.click", view: plansView },
      { id: "crewlog.team.click", view: team },
    ].map(({ id, view }) => commands.registerCommand(id, () => clicked(view))),
    board.onDidChange(showBoard),
    sessions.onDidChange(showSessions),
    plans.onDidChange(showPlans),
    crew.onDidChangeState(tellState),
    workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("crewlog.owner")) showBoard();
    }),
    {
      dispose: () => {
        clearTimeout(wake);
        clearTimeout(midnight);
        clearInterval(showAges);
        clearInterval(transcripts);
      },
    },
  );

  return {
    get filter() {
      return filter;
    },
    setFilter(to) {
      filter = to;
      tasks.description = isFiltered(to) ? filterText(to) : undefined;
      setContext("crewlog.tasks.filtered", isFiltered(to));
      tasksTree.refresh();
    },
    tasks,
    sessions: sessionsView,
    plans: plansView,
    team,
  };
}

/** Until the store was read for the first time, or no server is there to be asked: a view shows progress while it waits for its rows. */
async function firstRead(crew: Crew, store: { readonly tried: boolean; onDidChange: Event }): Promise<void> {
  while (!store.tried && crew.state !== "missing" && crew.state !== "failed") {
    await new Promise<void>((resolve) => {
      const waits = [store.onDidChange, crew.onDidChangeState].map((event) =>
        event(() => {
          for (const wait of waits) wait.dispose();
          resolve();
        }),
      );
    });
  }
}

/** How long VS Code may take to be told again of rows that it was told had changed. */
const TOLD_AGAIN_MS = 3000;

/**
 * Does what a click on a row is for. Arguments of a row's own command would be lost when the row changes just then: VS Code throws them
 * away before it draws the row anew, and says "Actual command not found". Which row was clicked it knows all the time.
 */
async function clicked(view: TreeView<Element>): Promise<void> {
  const until = Date.now() + TOLD_AGAIN_MS;
  while (view.selection.length === 0 && Date.now() < until) await new Promise((resolve) => setTimeout(resolve, 20));
  const run = view.selection[0]?.row.run;
  if (run !== undefined) await commands.executeCommand(run.command, ...run.args);
  else if (view.selection.length === 0) void window.showWarningMessage("What you clicked is not there any more.", "OK");
}

type Event = (handler: () => void) => { dispose(): void };

/** With sessions of several projects in one list, each says which it is of. */
function showsProjects(): boolean {
  return settings().allProjects || (workspace.workspaceFolders ?? []).length !== 1;
}
