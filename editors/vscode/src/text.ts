// Names, subjects and messages were written by agents: they are text, whatever stands in them.

/** Characters that direct a terminal or the order of other characters, and break lines: they would act on what stands beside them. */
const ACTING = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;
const LONGEST = 200;

/** One line for a label: white space made single blanks, acting characters shown as �, cut at 200 characters. */
export function line(text: string, longest = LONGEST): string {
  const start = text
    .slice(0, longest * 8)
    .replace(/\s+/g, " ")
    .trim();
  const clean = start.replace(ACTING, (found) => (found === "\u200d" ? found : "\ufffd"));
  const characters = [...clean];
  return characters.length > longest ? `${characters.slice(0, longest - 1).join("")}…` : clean;
}

/** Text of several lines for a plain tooltip: acting characters shown as �, line ends kept, cut at 1,000 characters. */
export function lines(text: string, longest = 1000): string {
  const clean = text
    .slice(0, longest * 2)
    .replace(ACTING, (found) => (found === "\n" || found === "\t" || found === "\u200d" ? found : "\ufffd"));
  return clean.length > longest ? `${clean.slice(0, longest - 1)}…` : clean;
}

/** For messages, quick picks and the status bar, which read `[text](command:…)` as a link and `$(name)` as an icon: neither is one after this. */
export function inert(text: string): string {
  return text.replace(/\]\(/g, "]\u200b(").replace(/\$\(/g, "$\u200b(");
}

/** "1 task", "2 tasks". */
export function count(n: number, one: string, many = `${one}s`): string {
  return `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
}
