/**
 * From a chain of entries to the rows of a page. Pure: no VS Code, no browser.
 *
 * A tool's result is shown inside the call that it answers, and what a call to the model cost beneath the message that came of it;
 * everything else is a row of its own, in the order of the chain.
 */

import type { Break } from "../protocol";
import type { PageEntry } from "./shrink";
import { byteSize, count, oneLine, plural } from "./visible";

/** What is known around the entries that are loaded. `reachesStart`: nothing is left to load before the first of them. */
export interface ChainState {
  reachesStart: boolean;
  broken?: Break | null;
}

export type Row = MessageRow | ResultRow | CompactionRow | NoteRow | UsageRow | OmittedRow | UnknownRow | BreakRow;

interface RowBase {
  /** Stable over rebuilds: heights, folds and focus hang on it. */
  key: string;
  /** The entry that copy, fork and rewind act on; none for what is no entry. */
  entryId?: string;
  timestamp: string;
  /** The day that begins with this row, as `2026-03-01`. */
  day?: string;
  /** Characters that were left out of its texts. */
  cut?: number;
}

export interface MessageRow extends RowBase {
  type: "message";
  role: string;
  blocks: Block[];
  usage?: CallUsage;
  stopReason?: string;
  /** Written by the program rather than by a person. */
  injected: boolean;
}

/** A result whose call is not on the page. */
export interface ResultRow extends RowBase {
  type: "result";
  callId: string;
  result: ToolResult;
  why: string;
}

export interface CompactionRow extends RowBase {
  type: "compaction";
  summary: string;
  kept: number;
}

export type NoteIcon = "model" | "effort" | "name" | "rewind" | "plan" | "goal" | "start";

export interface NoteRow extends RowBase {
  type: "note";
  icon: NoteIcon;
  /** What happened, and to what: the second part comes from the session. */
  label: string;
  value: string;
  detail?: string;
}

/** A call to the model that no message on the page came of. */
export interface UsageRow extends RowBase {
  type: "usage";
  usage: CallUsage;
}

export interface OmittedRow extends RowBase {
  type: "omitted";
  kind: string;
  bytes: number;
}

export interface UnknownRow extends RowBase {
  type: "unknown";
  kind: string;
  json: string;
  why: string;
}

export interface BreakRow extends RowBase {
  type: "break";
  text: string;
}

export type Block =
  | { type: "text"; text: string }
  | { type: "thinking"; text: string }
  | ImageBlock
  | { type: "reference"; name: string }
  | { type: "tool"; call: ToolCall }
  | { type: "other"; label: string; json: string };

export interface ImageBlock {
  type: "image";
  /** A `data:` address of a picture format, else nothing and `why` tells what stands there. */
  source?: string;
  why: string;
}

export interface ToolCall {
  id: string;
  name: string;
  /** One line that tells calls of one tool apart, taken from the arguments. */
  gist: string;
  args: string;
  argsError?: string;
  state: "done" | "failed" | "waiting" | "unanswered";
  result?: ToolResult;
}

export interface ToolResult {
  entryId: string;
  timestamp: string;
  isError: boolean;
  blocks: Block[];
  cut?: number;
}

export interface CallUsage {
  provider: string;
  model: string;
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  /** Of what went in, the share that came out of the cache, 0 to 1. */
  hitRate: number;
  latencyMs?: number;
  effort?: string;
  stopReason?: string;
  cost?: number;
  cacheBreak?: { dropped: number; share: number; reasons: string[]; note: string };
}

/** Picture formats that a browser shows and that cannot hold a script. */
const IMAGE_TYPES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp"]);
const ZERO_TIME = "0001-01-01";

/** The rows of a chain's entries, oldest first. Never throws: what it cannot read becomes a row that says so. */
export function buildRows(entries: readonly PageEntry[], state: ChainState): Row[] {
  const rows: Row[] = [];
  if (state.broken) rows.push(breakRow(state.broken));
  const open = new Map<string, ToolCall[]>();
  const answered = new Set<string>();
  let unspentCall: { usage: CallUsage; row: UsageRow } | undefined;
  let previous: Row | undefined;
  for (const entry of entries) {
    const row = rowOf(entry);
    if (row.type === "message") {
      const earlier = unspentCall;
      if (row.role === "assistant" && earlier && previous === earlier.row) {
        rows.pop();
        row.usage = joinUsage(earlier.usage, row.usage);
      }
      for (const block of row.blocks) {
        if (block.type !== "tool") continue;
        const calls = open.get(block.call.id);
        if (calls) calls.push(block.call);
        else open.set(block.call.id, [block.call]);
      }
    } else if (row.type === "result") {
      const call = open.get(row.callId)?.findLast((candidate) => candidate.result === undefined);
      if (call) {
        call.result = row.result;
        call.state = row.result.isError ? "failed" : "done";
        answered.add(row.callId);
        continue;
      }
      row.why = orphanReason(row.callId, answered, state);
    } else if (row.type === "usage") {
      if (
        previous?.type === "message" &&
        previous.role === "assistant" &&
        previous.usage?.latencyMs === undefined &&
        !spent.has(previous)
      ) {
        previous.usage = joinUsage(row.usage, previous.usage);
        spent.add(previous);
        continue;
      }
      unspentCall = { usage: row.usage, row };
    }
    rows.push(row);
    previous = row;
  }
  markUnanswered(rows);
  markDays(rows);
  return rows;
}

/** Entries before the new ones that are looked at again when some are added: what is new may belong to them. */
const LOOKED_AT_AGAIN = 200;

/**
 * The rows of `entries`, of which the last `added` are new: as `buildRows` makes them, `before` being what it made of the others. Costs
 * what is new rather than what there is, but for a result whose call is far back.
 */
export function appendRows(before: readonly Row[], entries: readonly PageEntry[], added: number, state: ChainState): Row[] {
  let start = entries.length - added - LOOKED_AT_AGAIN;
  // Nothing but a result belongs to what stands before somebody's message.
  while (start > 0 && !isUserMessage(entries[start])) start -= 1;
  if (start <= 0) return buildRows(entries, state);
  const key = entries[start]?.id;
  const at = before.findLastIndex((row) => row.key === key);
  const tail = at < 0 ? [] : buildRows(entries.slice(start), { reachesStart: false });
  if (tail.length === 0 || tail.some((row) => row.type === "result")) return buildRows(entries, state);
  const rows = before.slice(0, at);
  const day = rows.findLast((row) => row.day !== undefined)?.day;
  const first = tail.find((row) => row.day !== undefined);
  if (first !== undefined && first.day === day) delete first.day;
  return rows.concat(tail);
}

function isUserMessage(entry: PageEntry | undefined): boolean {
  return entry?.kind === "message" && isRecord(entry.data) && entry.data["role"] === "user" && Array.isArray(entry.data["content"]);
}

/** Messages that have the call they came of already. Rows are made anew with each build, so nothing stale stays in here. */
const spent = new WeakSet<MessageRow>();

/** A call without a result is waited for only while nothing but tools has spoken since. */
function markUnanswered(rows: readonly Row[]): void {
  let last = true;
  for (let index = rows.length - 1; index >= 0; index -= 1) {
    const row = rows[index];
    if (row?.type === "compaction") last = false;
    if (row?.type !== "message") continue;
    for (const block of row.blocks) {
      if (block.type === "tool" && !block.call.result) block.call.state = last ? "waiting" : "unanswered";
    }
    last = false;
  }
}

function markDays(rows: readonly Row[]): void {
  let current = "";
  for (const row of rows) {
    const day = localDay(row.timestamp);
    if (day && day !== current) {
      current = day;
      row.day = day;
    }
  }
}

function orphanReason(callId: string, answered: ReadonlySet<string>, state: ChainState): string {
  if (callId === "") return "it names no call";
  if (answered.has(callId)) return "its call was answered before";
  return state.reachesStart ? "its call is not in this conversation" : "its call stands further up, in entries not loaded yet";
}

function rowOf(entry: PageEntry): Row {
  const base: RowBase = { key: entry.id, entryId: entry.id, timestamp: entry.timestamp };
  if (entry.cutCharacters) base.cut = entry.cutCharacters;
  if (entry.omittedBytes !== undefined) return { ...base, type: "omitted", kind: entry.kind, bytes: entry.omittedBytes };
  const data = entry.data;
  if (!isRecord(data)) return unknownRow(base, entry, "its data is not a record");
  switch (entry.kind) {
    case "header":
      return note(base, "start", "Session began", text(data["cwd"]), text(data["name"]));
    case "message":
      return messageRow(base, entry, data);
    case "compaction":
      return {
        ...base,
        type: "compaction",
        summary: text(data["summary"]),
        kept: Array.isArray(data["messages"]) ? data["messages"].length : 0,
      };
    case "model_change":
      return note(base, "model", "Model", [text(data["provider"]), text(data["model"])].filter(Boolean).join(" / "));
    case "reasoning_effort_change":
    case "thinking_change":
      return note(base, "effort", "Reasoning effort", text(data["level"]) || "default");
    case "session_info":
      return infoRow(base, data);
    case "plan_state":
      return note(
        base,
        "plan",
        "Plan",
        [text(data["phase"]), text(data["slug"])].filter(Boolean).join(": "),
        text(data["pre_mode"]) && `before: ${text(data["pre_mode"])}`,
      );
    case "goal_state":
      return goalRow(base, data);
    case "llm_call":
      return { ...base, type: "usage", usage: callUsage(data) };
    default:
      return unknownRow(base, entry, "this kind of entry is not known here");
  }
}

function infoRow(base: RowBase, data: Fields): Row {
  if (typeof data["name"] === "string") return note(base, "name", data["name"] ? "Renamed to" : "Name removed", data["name"]);
  if (Object.keys(data).length === 0) return note(base, "rewind", "Went on from the entry above", "");
  return note(base, "name", "Session info", oneLine(json(data), 200));
}

function goalRow(base: RowBase, data: Fields): Row {
  const spentTokens = number(data["tokens_used"]);
  const budget = number(data["token_budget"]);
  const detail = [text(data["reason"]) || text(data["blocked_reason"]), budget ? `${count(spentTokens)} of ${count(budget)} tokens` : ""];
  return note(
    base,
    "goal",
    `Goal ${oneLine(text(data["status"]), 40) || "unknown"}`,
    text(data["objective"]),
    detail.filter(Boolean).join(" · "),
  );
}

function note(base: RowBase, icon: NoteIcon, label: string, value: string, detail = ""): NoteRow {
  return { ...base, type: "note", icon, label, value, ...(detail ? { detail } : {}) };
}

function unknownRow(base: RowBase, entry: PageEntry, why: string): UnknownRow {
  return { ...base, type: "unknown", kind: entry.kind, json: json(entry.data), why };
}

function breakRow(broken: Break): BreakRow {
  const missing = broken.missingParentId ? ` It follows entry ${oneLine(broken.missingParentId, 40)}, which is not in the file.` : "";
  return {
    key: "break",
    type: "break",
    timestamp: "",
    text: `The conversation cannot be followed further back than entry ${oneLine(broken.entryId, 40)}.${missing} “crewlog doctor” can mend it.`,
  };
}

function messageRow(base: RowBase, entry: PageEntry, data: Fields): Row {
  const content = data["content"] ?? [];
  if (!Array.isArray(content)) return unknownRow(base, entry, "the message has no list of blocks");
  const blocks = content.flatMap((block) => blockOf(block));
  const metadata = isRecord(data["metadata"]) ? data["metadata"] : {};
  if (data["role"] === "tool") {
    const result: ToolResult = { entryId: entry.id, timestamp: entry.timestamp, isError: metadata["is_error"] === true, blocks };
    if (base.cut) result.cut = base.cut;
    return { ...base, type: "result", callId: text(metadata["tool_call_id"]), result, why: "" };
  }
  const row: MessageRow = {
    ...base,
    type: "message",
    role: text(data["role"]) || "unknown",
    blocks,
    injected: metadata["injected"] === true,
  };
  const stop = text(data["stop_reason"]);
  if (stop) row.stopReason = stop;
  if (isRecord(data["usage"])) row.usage = messageUsage(data["usage"]);
  return row;
}

function blockOf(block: unknown): Block[] {
  if (!isRecord(block)) return block === null ? [] : [{ type: "other", label: "block", json: json(block) }];
  switch (block["type"]) {
    case "text":
      return text(block["text"]) === "" ? [] : [{ type: "text", text: text(block["text"]) }];
    case "thinking":
      return text(block["thinking"]) === "" ? [] : [{ type: "thinking", text: text(block["thinking"]) }];
    case "image":
      return [imageBlock(block["image"])];
    case "tool_reference":
      return [{ type: "reference", name: text(block["tool_name"]) }];
    case "toolCall":
      return isRecord(block["tool_call"])
        ? [{ type: "tool", call: toolCall(block["tool_call"]) }]
        : [{ type: "other", label: "call without a tool", json: json(block) }];
    default:
      return [{ type: "other", label: oneLine(text(block["type"]), 40) || "block", json: json(block) }];
  }
}

function imageBlock(image: unknown): ImageBlock {
  if (!isRecord(image)) return { type: "image", why: "an image without content" };
  const mime = text(image["mime_type"]).toLowerCase();
  const data = text(image["data"]);
  if (number(image["omittedBytes"]) > 0)
    return { type: "image", why: `an image of ${byteSize(number(image["omittedBytes"]))}: too large to show here` };
  if (data === "") {
    const url = text(image["url"]);
    return { type: "image", why: url ? `an image at ${oneLine(url, 200)} (not fetched)` : "an image without content" };
  }
  if (!IMAGE_TYPES.has(mime)) return { type: "image", why: `an image of type ${oneLine(mime, 60) || "unknown"}: not shown` };
  if (!/^[A-Za-z0-9+/=\s_-]*$/.test(data)) return { type: "image", why: "an image that cannot be decoded" };
  return {
    type: "image",
    source: `data:${mime};base64,${data.replace(/\s/g, "")}`,
    why: `${mime.slice(6).toUpperCase()} image, ${byteSize(data.length * 0.75)}`,
  };
}

function toolCall(call: Fields): ToolCall {
  const args = call["args"];
  const made: ToolCall = {
    id: text(call["id"]),
    name: text(call["name"]) || "unnamed tool",
    gist: gist(args),
    args: args === undefined || args === null ? text(call["args_raw_text"]) : json(args),
    state: "waiting",
  };
  const error = text(call["args_parse_error"]);
  if (error || call["args_invalid"] === true) made.argsError = error || "the arguments are not valid JSON";
  return made;
}

/** Keys that tell most about a call, in the order in which they are looked for. */
const TELLING = ["command", "cmd", "file_path", "path", "file", "pattern", "query", "url", "description", "name"];

function gist(args: unknown): string {
  if (!isRecord(args)) return typeof args === "string" ? oneLine(args, 120) : "";
  const key = TELLING.find((name) => typeof args[name] === "string") ?? Object.keys(args).find((name) => typeof args[name] === "string");
  return key === undefined ? "" : oneLine(text(args[key]), 120);
}

function messageUsage(usage: Fields): CallUsage {
  const made = withRate({
    provider: text(usage["provider"]),
    model: text(usage["model"]),
    input: number(usage["input"]),
    output: number(usage["output"]),
    cacheRead: number(usage["cache_read"]),
    cacheWrite: number(usage["cache_write"]),
    hitRate: 0,
  });
  if (isRecord(usage["cost"]) && number(usage["cost"]["total"]) > 0) made.cost = number(usage["cost"]["total"]);
  return made;
}

function callUsage(data: Fields): CallUsage {
  const made = withRate({
    provider: text(data["provider"]),
    model: text(data["model"]),
    input: number(data["input_tokens"]),
    output: number(data["output_tokens"]),
    cacheRead: number(data["cache_read_tokens"]),
    cacheWrite: number(data["cache_creation_tokens"]),
    hitRate: 0,
  });
  if (number(data["latency_ms"]) > 0) made.latencyMs = number(data["latency_ms"]);
  if (text(data["reasoning_effort"])) made.effort = text(data["reasoning_effort"]);
  if (text(data["stop_reason"])) made.stopReason = text(data["stop_reason"]);
  const broken = data["cache_break"];
  if (isRecord(broken)) {
    made.cacheBreak = {
      dropped: number(broken["drop_absolute"]),
      share: number(broken["drop_fraction"]),
      reasons: BREAK_REASONS.filter(([field]) => broken[field] === true).map(([, reason]) => reason),
      note: text(broken["note"]),
    };
  }
  return made;
}

const BREAK_REASONS = [
  ["frozen_system_changed", "fixed system prompt"],
  ["dynamic_system_changed", "changing system prompt"],
  ["system_changed", "system prompt"],
  ["tools_changed", "tools"],
] as const;

function withRate(usage: CallUsage): CallUsage {
  const wentIn = usage.input + usage.cacheRead + usage.cacheWrite;
  return { ...usage, hitRate: wentIn > 0 ? usage.cacheRead / wentIn : 0 };
}

/** What the call says, and of the message what only it knows. */
function joinUsage(call: CallUsage, message: CallUsage | undefined): CallUsage {
  return message?.cost === undefined ? call : { ...call, cost: message.cost };
}

/** The line under a message, for example `model · 1,200 in · 80 out · cache 91% read · 2.3 s · cost 0.0123`. */
export function usageLine(usage: CallUsage): string {
  const parts = [oneLine([usage.provider, usage.model].filter(Boolean).join(" / "), 80)];
  parts.push(`${count(usage.input)} in`, `${count(usage.output)} out`);
  if (usage.cacheRead > 0 || usage.cacheWrite > 0) {
    const written = usage.cacheWrite > 0 ? `, ${count(usage.cacheWrite)} written` : "";
    parts.push(`cache ${Math.round(usage.hitRate * 100)}% (${count(usage.cacheRead)} read${written})`);
  }
  if (usage.effort) parts.push(`effort ${oneLine(usage.effort, 20)}`);
  if (usage.latencyMs !== undefined) parts.push(duration(usage.latencyMs));
  if (usage.cost !== undefined) parts.push(`cost ${usage.cost.toFixed(usage.cost < 0.1 ? 4 : 2)}`);
  return parts.filter(Boolean).join(" · ");
}

/** What a broken prompt cache is told as. */
export function cacheBreakLine(broken: NonNullable<CallUsage["cacheBreak"]>): string {
  const why = broken.reasons.length > 0 ? `: ${broken.reasons.join(", ")} changed` : "";
  const share = broken.share > 0 ? ` (${Math.round(broken.share * 100)}%)` : "";
  return `Cache dropped by ${plural(broken.dropped, "token")}${share}${why}${broken.note ? ` · ${oneLine(broken.note, 120)}` : ""}`;
}

export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

/** Everything of a row that can be read on it, folded parts too: what find looks through. */
export function rowText(row: Row): string {
  switch (row.type) {
    case "message":
      return [...row.blocks.map(blockText), row.usage ? usageLine(row.usage) : ""].join("\n");
    case "result":
      return row.result.blocks.map(blockText).join("\n");
    case "compaction":
      return row.summary;
    case "note":
      return `${row.label} ${row.value} ${row.detail ?? ""}`;
    case "usage":
      return usageLine(row.usage);
    case "omitted":
      return row.kind;
    case "unknown":
      return `${row.kind}\n${row.json}`;
    case "break":
      return row.text;
  }
}

function blockText(block: Block): string {
  switch (block.type) {
    case "text":
    case "thinking":
      return block.text;
    case "image":
      return block.why;
    case "reference":
      return block.name;
    case "tool":
      return [block.call.name, block.call.args, ...(block.call.result?.blocks.map(blockText) ?? [])].join("\n");
    case "other":
      return block.json;
  }
}

/** What “copy text” puts on the clipboard for an entry: what was said in it, without marks. */
export function entryText(entry: { kind: string; data: unknown }): string {
  const data = entry.data;
  if (!isRecord(data)) return json(data);
  if (entry.kind === "compaction") return text(data["summary"]);
  if (entry.kind !== "message" || !Array.isArray(data["content"])) return json(data);
  const said = data["content"].filter(isRecord).map((block) => text(block["text"]) || text(block["thinking"]));
  return said.filter(Boolean).join("\n\n") || json(data["content"]);
}

/** The day in the reader's time zone, empty for a time that was never set or cannot be read. */
export function localDay(timestamp: string): string {
  const time = parseTime(timestamp);
  if (!time) return "";
  return `${time.getFullYear()}-${pad(time.getMonth() + 1)}-${pad(time.getDate())}`;
}

export function localTime(timestamp: string): string {
  const time = parseTime(timestamp);
  return time ? `${pad(time.getHours())}:${pad(time.getMinutes())}` : "";
}

function parseTime(timestamp: string): Date | undefined {
  if (timestamp.startsWith(ZERO_TIME)) return undefined;
  const time = new Date(timestamp);
  return Number.isNaN(time.getTime()) ? undefined : time;
}

function pad(value: number): string {
  return String(value).padStart(2, "0");
}

type Fields = { [key: string]: unknown };

function isRecord(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function number(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}

function json(value: unknown): string {
  return JSON.stringify(value, null, 2) ?? "";
}
