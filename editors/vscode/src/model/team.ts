// What the Team view shows.
import type { Roster, RosterMember, Task } from "../protocol";
import { count, line, lines } from "../text";
import type { Row } from "./row";
import { holder, listName, type TaskList } from "./tasks";

export interface Team {
  list: TaskList;
  roster: Roster;
  /** Messages in the transcript, by agent. */
  transcripts: ReadonlyMap<string, number>;
}

/** Colours that codebot's rosters name, as VS Code's. */
const NAMED: Record<string, string> = {
  red: "charts.red",
  orange: "charts.orange",
  yellow: "charts.yellow",
  green: "charts.green",
  blue: "charts.blue",
  purple: "charts.purple",
  cyan: "terminal.ansiCyan",
  teal: "terminal.ansiCyan",
  magenta: "terminal.ansiMagenta",
  pink: "terminal.ansiMagenta",
};

/** One team stands alone; of several, each is a row with its members below. */
export function teamRows(teams: Team[], now: number): Row[] {
  const shown = teams.filter(({ roster, transcripts }) => roster.team || roster.members?.length || transcripts.size > 0);
  const [only] = shown;
  if (shown.length === 1 && only !== undefined) return memberRows(only, now);
  return shown.map((team, index) => {
    const name = line(team.roster.team) || listName(team.list);
    const members = team.roster.members?.length ?? 0;
    return {
      key: `team:${team.list.listId}`,
      label: name,
      description: members > 0 ? count(members, "member") : count(team.transcripts.size, "transcript"),
      tooltip: [name, `Task list ${line(team.list.listId)}`, ...(team.roster.description ? [lines(team.roster.description)] : [])].join(
        "\n",
      ),
      icon: { name: "organization" },
      context: ["team", "id"],
      expanded: index === 0,
      children: () => memberRows(team, now),
      target: { listId: team.list.listId, copy: team.list.listId },
    };
  });
}

function memberRows(team: Team, now: number): Row[] {
  const members = team.roster.members ?? [];
  const names = new Set(members.map((member) => member.name));
  const others = [...team.transcripts.keys()].filter((agent) => !names.has(agent)).sort();
  const rows = members.map((member) => memberRow(member, team, now));
  const rest = () => others.map((agent) => memberRow({ name: agent, agent_type: "" }, team, now, false));
  if (others.length > 0) {
    rows.push({
      key: `others:${team.list.listId}`,
      label: members.length > 0 ? "Transcripts of others" : "Transcripts",
      description: String(others.length),
      spoken: `${members.length > 0 ? "Transcripts of others" : "Transcripts"}, ${others.length}`,
      context: ["group"],
      expanded: members.length === 0,
      children: rest,
    });
  }
  return rows;
}

function memberRow(member: RosterMember, team: Team, now: number, listed = true): Row {
  const { listId, tasks } = team.list;
  const held = [...(tasks?.values() ?? [])].filter((task) => task.status !== "completed" && holder(task, now) === member.name);
  const working = held.filter((task) => task.status === "in_progress");
  const doing = (working.length > 0 ? working : held).map(activity);
  const messages = team.transcripts.get(member.name);
  const told = [listed ? line(member.agent_type, 40) : messages === undefined ? "" : count(messages, "message")];
  if (doing[0] !== undefined) told.push(doing.length > 1 ? `${doing[0]} +${doing.length - 1}` : doing[0]);
  else if (listed) told.push("idle");
  const name = line(member.name) || "(no name)";
  return {
    key: `member:${listId}:${member.name}`,
    label: name,
    description: told.filter((text) => text !== "").join(" · "),
    tooltip: [
      name,
      listed ? `Type: ${line(member.agent_type)}` : "Has a transcript, but is not in the team.",
      ...(member.description ? [lines(member.description, 300)] : []),
      ...held.map((task) => `Works on #${line(task.id)} ${line(task.subject, 80)}`),
      messages === undefined ? "No transcript yet" : `Transcript: ${count(messages, "message")}`,
    ].join("\n"),
    spoken: `${name}, ${told.join(", ")}`,
    icon: icon(member.color ?? "", listed),
    context: ["member", "id", "transcript"],
    run: { command: "crewlog.transcript.open", title: "Show Transcript", args: [{ listId, agent: member.name }] },
    target: { listId, agent: member.name, copy: member.name },
  };
}

function activity(task: Task): string {
  return line((task.status === "in_progress" && task.activeForm) || task.subject, 60);
}

function icon(color: string, listed: boolean): NonNullable<Row["icon"]> {
  if (!listed) return { name: "comment", color: "descriptionForeground" };
  const hex = /^#[0-9a-f]{3}(?:[0-9a-f]{3})?$/i.exec(color)?.[0];
  if (hex !== undefined) {
    return {
      svg: `<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16" viewBox="0 0 16 16" fill="${hex}"><circle cx="8" cy="4.8" r="2.9"/><path d="M2.5 14a5.5 5.2 0 0 1 11 0z"/></svg>`,
    };
  }
  const named = Object.hasOwn(NAMED, color.toLowerCase()) ? NAMED[color.toLowerCase()] : undefined;
  return named === undefined ? { name: "account" } : { name: "account", color: named };
}
