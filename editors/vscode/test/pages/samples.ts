/** Sessions to look at, as entries for `session/append`. */

import { deflateSync } from "node:zlib";
import type { NewEntry } from "../../src/protocol";

type Fields = Record<string, unknown>;
const at = (minute: number) => `2026-03-01T09:${String(minute % 60).padStart(2, "0")}:00Z`;

export function entry(kind: string, data: unknown): NewEntry {
  return { kind, data: data as NewEntry["data"] & object };
}

export function said(role: string, ...content: Fields[]): NewEntry {
  return entry("message", { role, content, timestamp: at(0), ...(role === "assistant" ? { stop_reason: "stop" } : {}) });
}

export const text = (words: string): Fields => ({ type: "text", text: words });
export const thinking = (words: string): Fields => ({ type: "thinking", thinking: words });
export const call = (id: string, name: string, args: unknown): Fields => ({ type: "toolCall", tool_call: { id, name, args } });

export function result(id: string, words: string, isError = false): NewEntry {
  return entry("message", { role: "tool", content: [text(words)], metadata: { tool_call_id: id, is_error: isError }, timestamp: at(0) });
}

export function modelCall(fields: Fields = {}): NewEntry {
  return entry("llm_call", {
    provider: "anthropic",
    model: "claude-sonnet-4-5",
    input_tokens: 1240,
    output_tokens: 356,
    cache_read_tokens: 18_400,
    cache_creation_tokens: 512,
    latency_ms: 2310,
    stop_reason: "toolUse",
    ...fields,
  });
}

/** A morning's work: everything that a session usually holds. */
export function morning(): NewEntry[] {
  return [
    entry("model_change", { provider: "anthropic", model: "claude-sonnet-4-5" }),
    entry("reasoning_effort_change", { level: "high" }),
    said("user", text("The parser drops the last line of a file without a line end.\nFind out why, and add a test.")),
    said(
      "assistant",
      thinking("The reader probably splits on \\n and throws the remainder away. Let me look at it before I guess."),
      text("I'll look at how lines are read."),
      call("c1", "read_file", { path: "src/parser/lines.py" }),
      call("c2", "bash", { command: "rg -n 'splitlines|readline' src tests" }),
    ),
    result(
      "c1",
      "def lines(stream):\n    for chunk in stream:\n        *whole, rest = (rest + chunk).split(b'\\n')\n        yield from whole\n",
    ),
    result(
      "c2",
      "src/parser/lines.py:3:        *whole, rest = (rest + chunk).split(b'\\n')\n\u001b[32mtests/test_lines.py\u001b[0m:12: readline",
    ),
    modelCall(),
    said(
      "assistant",
      text(
        "## What goes wrong\n\n`lines` never yields `rest`: what stands after the last `\\n` is **lost**.\n\n| case | before | after |\n| --- | --- | --- |\n| `a\\nb` | `a` | `a`, `b` |\n| `a\\n` | `a` | `a` |\n\n1. Yield `rest` when the stream ends.\n2. A test for both cases.\n\n```python\nif rest:\n    yield rest\n```\n\nSee [the issue](https://example.org/issues/4) for the report.",
      ),
      call("c3", "bash", { command: "pytest -q tests/test_lines.py", timeout: 120 }),
    ),
    result("c3", "FAILED tests/test_lines.py::test_last_line - AssertionError: [b'a'] != [b'a', b'b']\n1 failed, 3 passed", true),
    modelCall({
      latency_ms: 840,
      cache_break: { drop_absolute: 17_000, drop_fraction: 0.92, tools_changed: true, note: "a tool was added" },
    }),
    entry("plan_state", { phase: "approved", slug: "calm-writing-river" }),
    entry("goal_state", { status: "active", objective: "No line is lost", tokens_used: 12_000, token_budget: 50_000 }),
    said("user", text("Good. Here is what I see:"), { type: "image", image: { mime_type: "image/png", data: png(360, 120) } }),
    entry("compaction", {
      summary: "The parser lost the last line. The fix is in `lines.py`; one test still fails.",
      messages: [{ role: "user", content: [text("Good.")] }],
    }),
    entry("model_change", { provider: "openai", model: "gpt-5" }),
    entry("message", {
      role: "assistant",
      content: [text("All four tests pass now."), call("c4", "write_file", { path: "CHANGELOG.md", content: "- The last line counts." })],
      stop_reason: "toolUse",
      usage: { provider: "openai", model: "gpt-5", input: 900, output: 120, cache_read: 300, cache_write: 0, cost: { total: 0.0123 } },
      timestamp: at(9),
    }),
  ];
}

/** What somebody might write who wants the page to do something, or a reader to see something that is not there. */
export function hostile(): NewEntry[] {
  return [
    said("user", text('<script>window.pwned = 1</script><img src=x onerror="window.pwned = 2"><b>bold?</b>')),
    said(
      "assistant",
      text(
        [
          "<script>window.pwned = 3</script>",
          "[run](command:workbench.action.terminal.new) [js](javascript:window.pwned=4) [web](https://evil.example/x) <https://evil.example/auto>",
          "![picture](https://evil.example/track.png) [data](data:text/html,<script>window.pwned=5</script>)",
          "[ref]: javascript:alert(1)",
          "<iframe src='https://evil.example'></iframe><style>body{display:none}</style>",
          "$(trash) https://evil.example/bare",
        ].join("\n\n"),
      ),
    ),
    said(
      "user",
      text(
        "file \u202egnp.exe\u202c and \u2066isolated\u2069 and zero\u200bwidth, bell\u0007, escape\u001b[31m, tags \u{e0041}\u{e0042}, separator\u2028end",
      ),
    ),
    said("assistant", text("العربية ثم English \u202e then reversed"), thinking("</details></article><script>window.pwned = 6</script>")),
    entry("message", { role: "</bdi><script>window.pwned=7</script>", content: [text("a role of its own")] }),
    said(
      "assistant",
      call('x"><script>', "<img src=x onerror=window.pwned=8>", { command: "</summary><script>window.pwned=9</script>", __proto__x: 1 }),
    ),
    said("user", {
      type: "image",
      image: { mime_type: "image/svg+xml", data: Buffer.from("<svg onload='window.pwned=10'/>").toString("base64") },
    }),
    said("user", { type: "image", image: { mime_type: "image/png", data: '"><script>window.pwned=11</script>' } }),
    said("user", { type: "image", image: { url: "https://evil.example/track.gif" } }),
    said("user", { type: "image", image: { mime_type: "image/png", data: "AAAA" } }),
    entry("model_change", { provider: "<b>x</b>", model: "\u202elive" }),
    entry("<script>kind", { a: "<script>window.pwned=12</script>" }),
    entry("message", { role: "user", content: "not a list" }),
    entry("message", { role: "assistant", content: [null, 7, "text", { type: "constructor" }, { type: "toolCall" }, { type: "image" }] }),
    entry("message", "no record"),
    entry("compaction", { summary: "<script>window.pwned=13</script>", messages: 7 }),
    result("never called", "a result for nobody"),
    entry("llm_call", { provider: 7, model: null, input_tokens: "many", cache_break: { drop_absolute: "x", note: "<b>" } }),
  ];
}

/** A picture of two stripes. */
export function png(width: number, height: number): string {
  const rows = Buffer.concat(
    Array.from({ length: height }, (_, y) => Buffer.concat([Buffer.from([0]), Buffer.alloc(width * 3, y < height / 2 ? 0x55 : 0xbb)])),
  );
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 2, 0, 0, 0], 8);
  const chunks = [chunk("IHDR", header), chunk("IDAT", deflateSync(rows)), chunk("IEND", Buffer.alloc(0))];
  return Buffer.concat([Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]), ...chunks]).toString("base64");
}

function chunk(name: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(name, "latin1"), data]);
  const framed = Buffer.alloc(8 + body.length);
  framed.writeUInt32BE(data.length, 0);
  body.copy(framed, 4);
  framed.writeUInt32BE(crc32(body), 4 + body.length);
  return framed;
}

function crc32(data: Buffer): number {
  let crc = ~0;
  for (const byte of data) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  }
  return ~crc >>> 0;
}
