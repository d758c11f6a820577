// What the Sessions view shows.
import type { SearchHit, SessionInfo, Skipped } from "../protocol";
import { count, inert, line, lines } from "../text";
import type { Row } from "./row";
import { age, dayKey, dayName } from "./time";

/** What a list of sessions does not tell; read afterwards. */
export interface SessionFacts {
  model?: string;
  /** In the currency of the messages; 0 where they state none. */
  cost?: number;
}

export function sessionTitle(session: SessionInfo): string {
  return line(session.name) || line(session.firstMessage) || `Session ${session.id}`;
}

/** `project`: whether to say which project each is of. */
export function sessionRows(
  sessions: SessionInfo[],
  facts: ReadonlyMap<string, SessionFacts>,
  skipped: Skipped[],
  more: boolean,
  project: boolean,
  now: number,
): Row[] {
  const days = new Map<string, SessionInfo[]>();
  for (const session of sessions) {
    const key = dayKey(session.updated);
    days.set(key, [...(days.get(key) ?? []), session]);
  }
  const rows: Row[] = [...days].map(([key, ofDay], index) => {
    const name = dayName(ofDay[0]?.updated ?? "", now);
    return {
      key: `day:${key}`,
      label: name,
      description: String(ofDay.length),
      spoken: `${name}, ${count(ofDay.length, "session")}`,
      context: ["day"],
      expanded: index < 3,
      children: () => ofDay.map((session) => sessionRow(session, facts.get(session.id) ?? {}, project, now)),
    };
  });
  if (more) {
    rows.push({
      key: "more",
      label: "Show older sessions…",
      icon: { name: "ellipsis" },
      run: { command: "crewlog.sessions.more", title: "Show Older Sessions", args: [] },
    });
  }
  if (skipped.length > 0) {
    rows.push({
      key: "skipped",
      label: `${count(skipped.length, "file")} that cannot be shown`,
      icon: { name: "warning", color: "list.warningForeground" },
      expanded: false,
      tooltip: '"crewlog doctor" tells more.',
      children: () =>
        skipped.map(({ path, reason }) => ({
          key: `skipped:${path}`,
          label: line(path.split(/[/\\]/).at(-1) ?? path),
          description: line(reason),
          tooltip: `${line(path, 500)}\n${lines(reason)}`,
          icon: { name: "file" },
          context: ["id"],
          target: { copy: path },
        })),
    });
  }
  return rows;
}

function sessionRow(session: SessionInfo, facts: SessionFacts, project: boolean, now: number): Row {
  const label = sessionTitle(session);
  const told = [age(session.updated, now), `${session.messageCount.toLocaleString("en")} msg`];
  if (facts.cost) told.push(costText(facts.cost));
  if (facts.model) told.push(line(facts.model, 40)); // last: the longest, and what is cut first in a narrow bar
  if (project) told.unshift(line(folderName(session.cwd), 40));
  return {
    key: `session:${session.id}`,
    label,
    description: told.filter((text) => text !== "").join(" · "),
    tooltip: sessionTooltip(session, facts),
    spoken: `${label}, ${told.join(", ")}`,
    icon: { name: "comment-discussion" },
    context: ["session", "id"],
    run: { command: "crewlog.session.open", title: "Open Session", args: [{ sessionId: session.id }] },
    target: { sessionId: session.id, copy: session.id },
  };
}

export function costText(cost: number): string {
  return `$${cost < 0.1 ? cost.toPrecision(2) : cost.toFixed(2)}`;
}

function folderName(cwd: string): string {
  return cwd.split(/[/\\]/).filter(Boolean).at(-1) ?? cwd;
}

function sessionTooltip(session: SessionInfo, facts: SessionFacts): string {
  const told = [sessionTitle(session), `Session ${session.id}`];
  if (facts.model) told.push(`Model: ${line(facts.model)}`);
  told.push(count(session.messageCount, "message"));
  if (facts.cost) told.push(`Cost: ${costText(facts.cost)}`);
  told.push(
    `Begun ${new Date(session.created).toLocaleString()}`,
    `Last ${new Date(session.updated).toLocaleString()}`,
    `Folder: ${line(session.cwd, 300)}`,
  );
  if (session.name && session.firstMessage) told.push("", lines(session.firstMessage, 300));
  return told.join("\n");
}

/** A hit of the full-text search as a row of a quick pick. Found words stand between « and ». */
export function hitItem(hit: SearchHit, now: number): { label: string; description: string; detail: string } {
  return {
    label: inert(sessionTitle(hit.session)),
    description: inert([hit.kind === "message" ? "" : hit.kind.replace(/_/g, " "), age(hit.timestamp, now)].filter(Boolean).join(" · ")),
    detail: inert(line(hit.snippet, 160)),
  };
}
