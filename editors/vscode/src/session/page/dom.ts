/** Building nodes. Nothing here, and nothing on the page, takes HTML. */

import { pieces } from "../visible";

type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | undefined>;

/** An element; strings among the children are the page's own words, not the session's. */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(name, "");
    else if (value !== undefined && value !== false) made.setAttribute(name, String(value));
  }
  for (const child of children) if (child) made.append(child);
  return made;
}

/** What the page is of, as the extension wrote it into the page: see `targetMeta`. */
export function pageTarget<T>(): Partial<T> {
  return JSON.parse(document.querySelector<HTMLMetaElement>('meta[name="crewlog-target"]')?.content ?? "{}") as Partial<T>;
}

/** A session's text: unseen characters as marks, everything else as text nodes. */
export function textNodes(text: string): DocumentFragment {
  const fragment = document.createDocumentFragment();
  for (const piece of pieces(text)) {
    if ("text" in piece) fragment.append(piece.text);
    else fragment.append(element("span", { class: "unseen", title: piece.title }, piece.mark));
  }
  return fragment;
}

/** A session's text within a line of ours: its direction does not reach what stands beside it. */
export function isolated(text: string, className?: string): HTMLElement {
  const made = element("bdi", className ? { class: className } : {});
  made.append(textNodes(text));
  return made;
}

/** Paths on a 16 by 16 grid, drawn for this page. */
const ICONS = {
  user: "M8 2a3 3 0 1 1 0 6 3 3 0 0 1 0-6zM2.5 14c0-3 2.4-4.8 5.5-4.8s5.5 1.8 5.5 4.8",
  assistant: "M8 1.5l1.6 4.9 4.9 1.6-4.9 1.6L8 14.5 6.4 9.6 1.5 8l4.9-1.6z",
  system: "M2 3h12v8H2zM5.5 14h5M8 11v3",
  tool: "M10.5 2.2a3.4 3.4 0 0 0-3 4.7l-5 5a1.3 1.3 0 0 0 1.8 1.8l5-5a3.4 3.4 0 0 0 4.3-4.4L11.5 6.4 9.8 4.7z",
  done: "M3 8.5l3.2 3.2L13 4.8",
  failed: "M4 4l8 8M12 4l-8 8",
  waiting: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM8 5v3.2l2.2 1.6",
  unanswered: "M5.8 6a2.3 2.3 0 1 1 3.3 2.1c-.8.4-1.1.8-1.1 1.7M8 12.2v.6",
  fold: "M3 5.5l5 5 5-5",
  compaction: "M2 8h12M8 1.5v4M6 4l2 2 2-2M8 14.5v-4M6 12l2-2 2 2",
  model: "M4 4h8v8H4zM6.5 1.5V4M9.5 1.5V4M6.5 12v2.5M9.5 12v2.5M1.5 6.5H4M1.5 9.5H4M12 6.5h2.5M12 9.5h2.5",
  effort: "M2 13h3V9H2zM6.5 13h3V6h-3zM11 13h3V3h-3z",
  name: "M2 12.5V10l8-8 2.5 2.5-8 8zM8.8 3.2l2.5 2.5",
  rewind: "M6 3L2.5 6.5 6 10M2.5 6.5H10a3.5 3.5 0 0 1 0 7H7",
  plan: "M3 2h10v12H3zM5.5 5.5h5M5.5 8h5M5.5 10.5h3",
  goal: "M3.5 14.5v-13M3.5 2.5h9l-2 3 2 3h-9",
  start: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM6.7 5.6v4.8L10.6 8z",
  warning: "M8 2l6.5 11.5h-13zM8 6.5v3.3M8 11.4v.6",
  copy: "M5.5 5.5h8v8h-8zM3.5 10.5h-1v-8h8v1",
  id: "M3 5.5h10M3 10.5h10M6.5 2.5l-1.5 11M11 2.5l-1.5 11",
  fork: "M4.5 5.5v5M4.5 2.5a1.5 1.5 0 1 1 0 3 1.5 1.5 0 0 1 0-3zM4.5 10.5a1.5 1.5 0 1 1 0 3 1.5 1.5 0 0 1 0-3zM11.5 2.5a1.5 1.5 0 1 1 0 3 1.5 1.5 0 0 1 0-3zM11.5 5.5c0 3-7 2-7 5",
  find: "M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9zM10.3 10.3l3.7 3.7",
  up: "M3 10.5l5-5 5 5",
  down: "M3 5.5l5 5 5-5",
  close: "M4 4l8 8M12 4l-8 8",
  image: "M2 3h12v10H2zM2 11l3.5-3.5 3 3 2-2 3.5 3.5M10.5 5.5v.5",
  folds: "M3 3h10v4H3zM5 10h6M5 13h6",
  raw: "M5.5 4L2 8l3.5 4M10.5 4L14 8l-3.5 4",
  whole: "M9.5 2.5h4v4M13.5 2.5l-5 5M6.5 13.5h-4v-4M2.5 13.5l5-5",
  ready: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11z",
  blocked: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM4.2 4.2l7.6 7.6",
  completed: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM5.3 8.3l2 2 3.6-4.2",
  missing: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM5.8 5.8l4.4 4.4M10.2 5.8l-4.4 4.4",
  more: "M3.5 7.5h1v1h-1zM7.5 7.5h1v1h-1zM11.5 7.5h1v1h-1z",
} as const;

export type IconName = keyof typeof ICONS;
const SVG = "http://www.w3.org/2000/svg";

/** Decoration: what it means is said in text or in a label beside it. */
export function icon(name: IconName): SVGSVGElement {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", `icon icon-${name}`);
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

/**
 * The focus goes back to an element that stands for one that had it and is drawn anew. Not while the user is elsewhere, in a question of the
 * editor, say: a page that takes the focus then takes the question away. It has it when the user comes back.
 */
export function refocus(find: () => HTMLElement | null | undefined): void {
  if (document.hasFocus()) return find()?.focus({ preventScroll: true });
  const back = () => {
    if (document.activeElement === document.body) find()?.focus({ preventScroll: true });
  };
  window.addEventListener("focus", back, { once: true });
}
