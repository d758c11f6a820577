/** Text from a session made safe to look at: what cannot be seen, or would reorder what is seen, is named instead of shown. */

/** A piece of text as it is, or a mark in place of characters that have no shape of their own. */
export type Piece = { text: string } | { mark: string; title: string };

// C0 but tab and line feed, DEL, C1, soft hyphen, bidi controls, zero-width characters (joiners are kept: scripts and emoji need them),
// line and paragraph separators, invisible operators, annotations, tags, supplementary variation selectors, lone surrogates.
const UNSEEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e01ef}\p{Cs}]|\u034f/u;
const UNSEEN_RUNS = new RegExp(`(${UNSEEN.source})\\1*`, "gu");

/** Short names, from the Unicode character database's aliases. */
const NAMES: Record<number, [string, string]> = {
  127: ["DEL", "delete"],
  133: ["NEL", "next line"],
  173: ["SHY", "soft hyphen"],
  1564: ["ALM", "Arabic letter mark"],
  8203: ["ZWSP", "zero width space"],
  8206: ["LRM", "left-to-right mark"],
  8207: ["RLM", "right-to-left mark"],
  8232: ["LS", "line separator"],
  8233: ["PS", "paragraph separator"],
  8234: ["LRE", "left-to-right embedding"],
  8235: ["RLE", "right-to-left embedding"],
  8236: ["PDF", "pop directional formatting"],
  8237: ["LRO", "left-to-right override"],
  8238: ["RLO", "right-to-left override"],
  8288: ["WJ", "word joiner"],
  8294: ["LRI", "left-to-right isolate"],
  8295: ["RLI", "right-to-left isolate"],
  8296: ["FSI", "first strong isolate"],
  8297: ["PDI", "pop directional isolate"],
  65279: ["BOM", "byte order mark"],
};

/** The pieces of a text. CR LF counts as a line end; a run of one unseen character becomes one mark with its count. */
export function pieces(text: string): Piece[] {
  const plain = text.includes("\r") ? text.replace(/\r\n/g, "\n") : text;
  if (!UNSEEN.test(plain)) return plain === "" ? [] : [{ text: plain }];
  const found: Piece[] = [];
  let from = 0;
  for (const match of plain.matchAll(UNSEEN_RUNS)) {
    if (match.index > from) found.push({ text: plain.slice(from, match.index) });
    const one = match[1] ?? match[0];
    found.push(markFor(one.codePointAt(0) ?? 0, match[0].length / one.length));
    from = match.index + match[0].length;
  }
  if (from < plain.length) found.push({ text: plain.slice(from) });
  return found;
}

function markFor(code: number, times: number): Piece {
  const hex = `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
  const known = NAMES[code];
  const short = code < 0x20 ? String.fromCodePoint(0x2400 + code) : (known?.[0] ?? hex);
  const repeated = times > 1 ? ` ×${times}` : "";
  return { mark: short + repeated, title: `${known ? `${hex} ${known[1]}` : hex}${repeated}` };
}

/** The text with marks in line, for places that take nothing but a string (labels, titles, option texts). */
export function plainText(text: string): string {
  return pieces(text)
    .map((piece) => ("text" in piece ? piece.text : `⟨${piece.mark}⟩`))
    .join("");
}

/** One line of at most `limit` characters, cut between characters. */
export function oneLine(text: string, limit: number): string {
  const flat = plainText(text.slice(0, limit * 4 + 200))
    .replace(/\s+/g, " ")
    .trim();
  const characters = Array.from(flat);
  return characters.length > limit ? `${characters.slice(0, limit - 1).join("")}…` : flat;
}

/** Escape sequences that only colour what follows; terminals' output is full of them and they say nothing here. */
export function withoutColours(text: string): string {
  return text.includes("\u001b[") ? text.replace(/\u001b\[[0-9;:]*m/g, "") : text;
}

/** `1.2 kB` and the like, by powers of 1,000. */
export function byteSize(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${(bytes / 1000).toFixed(bytes < 10_000 ? 1 : 0)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

const GROUPED = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** Grouped by thousands, the same in every locale, so that a screenshot and a test read the same. */
export function count(value: number): string {
  return GROUPED.format(value);
}

export function plural(value: number, noun: string, nouns = `${noun}s`): string {
  return `${count(value)} ${value === 1 ? noun : nouns}`;
}
