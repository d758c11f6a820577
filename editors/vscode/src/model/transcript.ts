import type { ContentBlock, Message } from "../protocol";
import { lines } from "../text";

const LONGEST = 20_000;

/** Messages as plain text: a heading line for each, what follows it indented, so that VS Code folds it. */
export function transcriptText(agent: string, messages: Message[]): string {
  const out = [`Transcript of ${lines(agent, 200)}: ${messages.length} messages`, ""];
  messages.forEach((message, index) => {
    const when = message.timestamp ? `  ${lines(message.timestamp, 40)}` : "";
    out.push(`${index + 1}. ${lines(String(message.role), 40)}${message.metadata?.is_error === true ? " (error)" : ""}${when}`);
    for (const block of message.content ?? []) for (const text of blockText(block).split("\n")) out.push(text === "" ? "" : `    ${text}`);
    out.push("");
  });
  return `${out.join("\n")}\n`;
}

function blockText(block: ContentBlock): string {
  switch (block.type) {
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
      return `(${shown(String(block.type))})`;
  }
}

function shown(text: string): string {
  return text.length > LONGEST
    ? `${lines(text, LONGEST)} (${(text.length - LONGEST).toLocaleString("en")} characters more)`
    : lines(text, LONGEST);
}
