import { commands, type TreeView, window, workspace } from "vscode";
import type { Parts } from "../context";
import type { Crew } from "../crew";
import { planRows } from "../model/plans";
import type { Row } from "../model/row";
import { sessionRows } from "../model/sessions";
import { filterText, isFiltered, nextChange, type TaskFilter, taskRows } from "../model/tasks";
import { teamRows } from "../model/team";
import { untilMidnight } from "../model/time";
import { settings } from "../settings";
import { count } from "../text";
import { RowTree } from "./rowTree";
import { TaskDrop } from "./taskDrop";

export interface Views {
  filter: TaskFilter;
  setFilter(filter: TaskFilter): void;
  tasks: TreeView<Row>;
  sessions: TreeView<Row>;
  plans: TreeView<Row>;
  team: TreeView<Row>;
}

/** "5 min" ago must not stand there for an hour. */
const AGES_MS = 60_000;
/** Nobody tells of transcripts that grow. */
const TRANSCRIPTS_MS = 5000;
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

export function registerViews(parts: Parts): Views {
  const { context, crew, board, sessions, plans } = parts;
  let filter: TaskFilter = {};
  let wake: NodeJS.Timeout | undefined;

  const tasksTree = new RowTree(
    async () => {
      await firstRead(crew, board);
      if (isFiltered(filter)) await Promise.all(board.lists().map(({ listId }) => board.load(listId)));
      const now = Date.now();
      const lists = board.lists().filter(({ counts }) => counts.total > 0);
      if (lists.length === 1 && lists[0] !== undefined) await board.load(lists[0].listId);
      return taskRows(lists, board.active()?.listId, filter, settings().owner, now);
    },
    async (row) => {
      if (row.context?.includes("list") && row.target?.listId !== undefined) await board.load(row.target.listId);
    },
    (row) => {
      // the row was made before its tasks were read
      if (!row.context?.includes("list")) return row.children?.() ?? [];
      const rows = taskRows(board.lists(), board.active()?.listId, filter, settings().owner, Date.now());
      return (rows.find(({ key }) => key === row.key) ?? row).children?.() ?? [];
    },
  );
  const sessionsTree = new RowTree(async () => {
    await firstRead(crew, sessions);
    return sessionRows(sessions.all(), sessions.facts, sessions.skipped, sessions.more, showsProjects(), Date.now());
  });
  const plansTree = new RowTree(async () => {
    await firstRead(crew, plans);
    return planRows(plans.all, Date.now());
  });
  const teamTree = new RowTree(async () => {
    await firstRead(crew, board);
    return teamRows(board.teams(), Date.now());
  });

  const tasks = window.createTreeView("crewlog.tasks", {
    treeDataProvider: tasksTree,
    showCollapseAll: true,
    dragAndDropController: new TaskDrop(parts),
  });
  const sessionsView = window.createTreeView("crewlog.sessions", { treeDataProvider: sessionsTree, showCollapseAll: true });
  const plansView = window.createTreeView("crewlog.plans", { treeDataProvider: plansTree });
  const team = window.createTreeView("crewlog.team", { treeDataProvider: teamTree });

  const setContext = (key: string, value: unknown) => void commands.executeCommand("setContext", key, value);
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
    const tell = (view: TreeView<Row>, empty: boolean) => {
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

type Event = (handler: () => void) => { dispose(): void };

/** With sessions of several projects in one list, each says which it is of. */
function showsProjects(): boolean {
  return settings().allProjects || (workspace.workspaceFolders ?? []).length !== 1;
}
