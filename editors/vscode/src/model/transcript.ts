import type { ContentBlock, Message } from "../protocol";
import { count, line, lines } from "../text";

const LONGEST = 20_000;

/** Messages as plain text: a heading line for each, what follows it indented, so that VS Code folds it. */
export function transcriptText(agent: string, messages: Message[]): string {
  const out = [`Transcript of ${line(agent)}: ${count(messages.length, "message")}`, ""];
  messages.forEach((message, index) => {
    const role = line(typeof message.role === "string" ? message.role : "", 40) || "(no role)";
    const heading = `${index + 1}. ${role}${message.metadata?.is_error === true ? " (error)" : ""}`;
    out.push([heading, when(message.timestamp)].filter(Boolean).join(" · "));
    const blocks = Array.isArray(message.content) ? message.content : undefined;
    const texts = blocks?.map(blockText) ?? [shown(JSON.stringify(message, null, 2))]; // what is no message is shown as it is
    for (const text of texts) for (const part of text.split("\n")) out.push(part === "" ? "" : `    ${part}`);
    out.push("");
  });
  return `${out.join("\n")}\n`;
}

/** The time in local time; as it is where it cannot be read; "" for none. */
function when(timestamp: unknown): string {
  if (typeof timestamp !== "string" || timestamp === "") return "";
  const date = new Date(timestamp);
  if (Number.isNaN(date.getTime())) return line(timestamp, 40);
  const two = (n: number) => String(n).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

function blockText(block: ContentBlock): string {
  switch (block?.type) {
    case "text":
      return shown(block.text ?? "");
    case "thinking":
      return `(thinking) ${shown(block.thinking ?? "")}`;
    case "toolCall": {
      const call = (block.tool_call ?? {}) as { name?: unknown; args?: unknown };
      return `→ ${shown(String(call.name ?? "tool"))} ${shown(JSON.stringify(call.args ?? {}, null, 2))}`;
    }
    case "image":
      return "(image)";
    case "tool_reference":
      return `(tool ${shown(block.tool_name ?? "")})`;
    default:
      return shown(JSON.stringify(block, null, 2));
  }
}

function shown(text: string): string {
  return text.length > LONGEST
    ? `${lines(text, LONGEST)} (${(text.length - LONGEST).toLocaleString("en")} characters more)`
    : lines(text, LONGEST);
}
