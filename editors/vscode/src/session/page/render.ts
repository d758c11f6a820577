/** A row as elements. What is unfolded is asked of `Folds`, so that a row can be drawn again at any time. */

import { MAX_MARKDOWN, markdown } from "../markdown";
import {
  type Block,
  type CallUsage,
  cacheBreakLine,
  localTime,
  type MessageRow,
  type Row,
  type ToolCall,
  type ToolResult,
  usageLine,
} from "../rows";
import { byteSize, count, oneLine, plainText, plural, withoutColours } from "../visible";
import { element, type IconName, icon, isolated, textNodes } from "./dom";

export interface Look {
  /** Whether a fold is open; `byDefault` where nobody touched it. */
  isOpen(key: string, byDefault: boolean): boolean;
  /** Markdown as it is written. */
  raw: boolean;
}

/** Thinking that is longer is folded. codebot keeps at most 200 characters of it. */
const LONG_THINKING = 280;

export function drawRow(row: Row, look: Look): HTMLElement {
  const article = element("article", { class: `row row-${row.type}`, tabindex: -1, "data-key": row.key, "aria-label": labelOf(row) });
  if (row.day) article.append(element("div", { class: "day" }, element("span", {}, row.day)));
  const body = bodyOf(row, look);
  article.append(body);
  if (row.cut && row.entryId) {
    article.append(
      element(
        "p",
        { class: "cut" },
        `${plural(row.cut, "character")} more. `,
        action("openWhole", "Open the whole entry", row.entryId, undefined, true),
      ),
    );
  }
  return article;
}

/** What a screen reader says of a row before reading it. */
export function labelOf(row: Row): string {
  const time = localTime(row.timestamp);
  const at = time ? `, ${time}` : "";
  switch (row.type) {
    case "message": {
      const calls = row.blocks.filter((block) => block.type === "tool");
      const failed = calls.filter((block) => block.type === "tool" && block.call.state === "failed").length;
      const tools = calls.length > 0 ? `, ${plural(calls.length, "tool call")}${failed > 0 ? `, ${failed} failed` : ""}` : "";
      return `${roleName(row.role)}${at}${tools}`;
    }
    case "result":
      return `Tool result without its call${at}`;
    case "compaction":
      return `Conversation compacted${at}`;
    case "note":
      return `${row.label} ${oneLine(row.value, 80)}${at}`;
    case "usage":
      return `Model call${at}`;
    case "omitted":
      return `Entry of ${byteSize(row.bytes)}, not loaded${at}`;
    case "unknown":
      return `Unknown entry ${oneLine(row.kind, 40)}${at}`;
    case "break":
      return "The conversation breaks here";
  }
}

/** Its height before it was ever measured, in pixels. */
export function guessHeight(row: Row): number {
  const day = row.day ? 34 : 0;
  if (row.type === "message") {
    let height = 44 + day + (row.usage ? 22 : 0);
    for (const block of row.blocks) {
      if (block.type === "text") height += 12 + 20 * Math.max(block.text.length / 95, block.text.split("\n", 60).length);
      else if (block.type === "thinking") height += 14 + (block.text.length > LONG_THINKING ? 18 : 20 * (block.text.length / 95));
      else if (block.type === "tool") height += 34;
      else if (block.type === "image") height += 160;
      else height += 30;
    }
    return height;
  }
  if (row.type === "unknown" || row.type === "result" || row.type === "omitted") return 70 + day;
  return 36 + day;
}

function bodyOf(row: Row, look: Look): HTMLElement {
  switch (row.type) {
    case "message":
      return message(row, look);
    case "result": {
      const head = heading("tool", "Tool result", row.timestamp, row.entryId);
      const why = element("p", { class: "why" }, row.why ? `Shown by itself: ${row.why}.` : "");
      return element("div", { class: "card role-tool" }, head, why, result(row.result, `${row.key}/result`, look));
    }
    case "compaction": {
      const kept = row.kept > 0 ? `, ${plural(row.kept, "message")} kept` : "";
      const line = element(
        "div",
        { class: "divider" },
        icon("compaction"),
        element("span", {}, `Conversation compacted${kept}`),
        actions(row.entryId, true),
      );
      const body = element("div", { class: "card" }, line);
      if (row.summary) {
        const shown = fold(
          `${row.key}/summary`,
          false,
          look,
          [element("span", { class: "fold-title" }, "Summary"), gist(row.summary)],
          () => prose(row.summary, look),
        );
        body.append(shown);
      }
      return body;
    }
    case "note":
      return element(
        "div",
        { class: "note" },
        icon(row.icon),
        element("span", { class: "note-label" }, row.label),
        row.value ? isolated(row.value, "note-value") : null,
        row.detail ? isolated(row.detail, "note-detail") : null,
        timeOf(row.timestamp),
        actions(row.entryId, false),
      );
    case "usage":
      return element("div", { class: "note" }, usage(row.usage));
    case "omitted":
      return element(
        "div",
        { class: "card notice-card" },
        heading("warning", `Entry of ${byteSize(row.bytes)}`, row.timestamp, row.entryId),
        element("p", {}, `It is large, so it was not loaded with the others (kind: ${oneLine(row.kind, 40)}).`),
        element(
          "p",
          {},
          action("load", "Load it", row.entryId ?? "", undefined, true),
          " ",
          action("openWhole", "Open in an editor", row.entryId ?? "", undefined, true),
        ),
      );
    case "unknown":
      return element(
        "div",
        { class: "card notice-card" },
        heading("warning", "Entry of kind ", row.timestamp, row.entryId, row.kind),
        element("p", { class: "why" }, `Shown as it is stored: ${row.why}.`),
        fold(`${row.key}/json`, false, look, [element("span", { class: "fold-title" }, "Content"), gist(row.json)], () => code(row.json)),
      );
    case "break":
      return element("div", { class: "card notice-card" }, element("p", { class: "with-icon" }, icon("warning"), plainText(row.text)));
  }
}

function message(row: MessageRow, look: Look): HTMLElement {
  const known = (["user", "assistant", "system", "tool"] as const).find((role) => role === row.role);
  const head = heading(known ?? "warning", known ? roleName(known) : "Role ", row.timestamp, row.entryId, known ? undefined : row.role);
  if (row.injected) head.querySelector("time")?.before(element("span", { class: "tag" }, "added by the program"));
  const made = element("div", { class: `card role-${known ?? "other"}` }, head);
  if (row.blocks.length === 0) made.append(element("p", { class: "empty" }, "An empty message."));
  for (const [at, block] of row.blocks.entries()) {
    made.append(blockOf(block, `${row.key}/${at}`, look, known === "assistant"));
  }
  const stop = row.stopReason ?? "";
  if (stop && !["stop", "toolUse", "end_turn", "tool_use"].includes(stop)) {
    made.append(element("p", { class: "why with-icon" }, icon("warning"), "Stopped: ", isolated(oneLine(stop, 80))));
  }
  if (row.usage) made.append(usage(row.usage));
  return made;
}

function blockOf(block: Block, key: string, look: Look, rendered: boolean): HTMLElement {
  switch (block.type) {
    case "text":
      return rendered ? prose(block.text, look) : plain(block.text);
    case "thinking": {
      const body = () => element("div", { class: "thinking", dir: "auto" }, textNodes(block.text));
      if (block.text.length <= LONG_THINKING) {
        const short = body();
        short.prepend(element("span", { class: "sr-only" }, "Thinking: "));
        return short;
      }
      return fold(key, false, look, [element("span", { class: "fold-title" }, "Thinking"), gist(block.text)], body, "thinking-fold");
    }
    case "image": {
      if (!block.source) return element("p", { class: "placeholder with-icon" }, icon("image"), isolated(block.why));
      const image = element("img", { src: block.source, alt: block.why, title: block.why });
      image.addEventListener("error", () =>
        image.replaceWith(element("p", { class: "placeholder with-icon" }, icon("image"), "An image that cannot be shown.")),
      );
      return element("div", { class: "picture" }, image);
    }
    case "reference":
      return element("p", { class: "placeholder with-icon" }, icon("tool"), "Tool ", isolated(oneLine(block.name, 120)));
    case "tool":
      return toolCall(block.call, key, look);
    case "other":
      return fold(key, false, look, [element("span", { class: "fold-title" }, "Unknown part: "), isolated(oneLine(block.label, 60))], () =>
        code(block.json),
      );
  }
}

const STATES: Record<ToolCall["state"], [IconName, string]> = {
  done: ["done", "done"],
  failed: ["failed", "failed"],
  waiting: ["waiting", "no result yet"],
  unanswered: ["unanswered", "no result"],
};

function toolCall(call: ToolCall, key: string, look: Look): HTMLElement {
  const [stateIcon, stateText] = STATES[call.state];
  const summary = [
    icon("tool"),
    isolated(oneLine(call.name, 60), "tool-name"),
    call.gist ? isolated(call.gist, "tool-gist") : null,
    element("span", { class: `state state-${call.state}` }, icon(stateIcon), stateText),
  ];
  return fold(
    key,
    false,
    look,
    summary,
    () => {
      const body = element("div", { class: "tool-body" });
      if (call.argsError) body.append(element("p", { class: "why with-icon" }, icon("warning"), isolated(oneLine(call.argsError, 300))));
      if (call.args && call.args !== "{}") body.append(element("div", { class: "part" }, "Arguments"), code(call.args));
      if (call.result) {
        body.append(
          element("div", { class: "part" }, call.result.isError ? "Result (error)" : "Result"),
          result(call.result, `${key}/result`, look),
        );
      } else {
        body.append(
          element(
            "p",
            { class: "why" },
            call.state === "waiting"
              ? "No result yet."
              : "No result was recorded: the run was interrupted, or the result was compacted away.",
          ),
        );
      }
      return body;
    },
    `tool tool-${call.state}`,
  );
}

function result(shown: ToolResult, key: string, look: Look): HTMLElement {
  const body = element("div", { class: shown.isError ? "result result-error" : "result" });
  for (const [at, block] of shown.blocks.entries()) {
    body.append(block.type === "text" ? code(withoutColours(block.text)) : blockOf(block, `${key}/${at}`, look, false));
  }
  if (shown.blocks.length === 0) body.append(element("p", { class: "empty" }, "An empty result."));
  if (shown.cut) {
    body.append(
      element(
        "p",
        { class: "cut" },
        `${plural(shown.cut, "character")} more. `,
        action("openWhole", "Open the whole result", shown.entryId, undefined, true),
      ),
    );
  }
  return body;
}

function usage(shown: CallUsage): HTMLElement {
  const line = element("div", { class: "usage" }, isolated(usageLine(shown)));
  if (shown.cacheBreak)
    line.append(element("span", { class: "cache-break with-icon" }, icon("warning"), isolated(cacheBreakLine(shown.cacheBreak))));
  return line;
}

/** Parts are drawn when they are opened: a page of tool calls is mostly folds that nobody opens. */
function fold(key: string, byDefault: boolean, look: Look, summary: (Node | null)[], body: () => HTMLElement, className = ""): HTMLElement {
  const details = element("details", { class: `fold ${className}`, "data-fold": key });
  details.append(element("summary", {}, icon("fold"), ...summary));
  if (look.isOpen(key, byDefault)) {
    details.open = true;
    details.append(body());
  }
  return details;
}

function prose(text: string, look: Look): HTMLElement {
  if (look.raw || text.length > MAX_MARKDOWN) return plain(text);
  const made = element("div", { class: "prose", dir: "auto" });
  made.append(markdown(text));
  return made;
}

function plain(text: string): HTMLElement {
  return element("div", { class: "plain", dir: "auto" }, textNodes(text));
}

function code(text: string): HTMLElement {
  return element("pre", { tabindex: 0 }, element("code", {}, textNodes(text)));
}

function gist(text: string): HTMLElement {
  return isolated(oneLine(text, 120), "tool-gist");
}

function heading(name: IconName, title: string, timestamp: string, entryId?: string, named?: string): HTMLElement {
  return element(
    "header",
    { class: "head" },
    icon(name),
    element("span", { class: "role" }, title, named === undefined ? null : isolated(oneLine(named, 60))),
    timeOf(timestamp),
    actions(entryId, true),
  );
}

function timeOf(timestamp: string): HTMLElement | null {
  const time = localTime(timestamp);
  return time ? element("time", { datetime: timestamp, title: timestamp }, time) : null;
}

function actions(entryId: string | undefined, said: boolean): HTMLElement | null {
  if (!entryId) return null;
  return element(
    "span",
    { class: "actions" },
    said ? action("copyText", "Copy text", entryId, "copy") : null,
    action("copyId", "Copy entry id", entryId, "id"),
    action("fork", "Fork from here", entryId, "fork"),
    action("rewind", "Rewind to here", entryId, "rewind"),
  );
}

function action(name: string, label: string, entryId: string, shape?: IconName, asLink = false): HTMLElement {
  const button = element("button", {
    type: "button",
    class: asLink ? "text-button" : "icon-button",
    "data-action": name,
    "data-entry": entryId,
  });
  if (shape) {
    button.append(icon(shape));
    button.title = label;
    button.setAttribute("aria-label", label);
    button.tabIndex = -1;
  } else {
    button.append(label);
  }
  return button;
}

function roleName(role: string): string {
  const names: Record<string, string> = { user: "User", assistant: "Assistant", system: "System", tool: "Tool" };
  return Object.hasOwn(names, role) ? (names[role] ?? "") : `Role ${oneLine(role, 40)}`;
}

export function ofTotal(loaded: number, total: number): string {
  return loaded >= total ? plural(total, "entry", "entries") : `${count(loaded)} of ${count(total)} entries`;
}
