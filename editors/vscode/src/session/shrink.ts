/** Entries cut down to what a page can hold: a 5 MB line or 10,000 levels of nesting must not reach the browser. */

import type { Entry, Json } from "../protocol";

/** UTF-16 units of one text that are shown; the whole is a click away. */
export const MAX_TEXT = 40_000;
/** Characters of base64, some 3 MB of image. */
export const MAX_IMAGE = 4_000_000;
/** Of all texts of one entry together. */
const MAX_TEXTS = 400_000;
const MAX_DEPTH = 60;
const MAX_VALUES = 20_000;

/** An entry as a page gets it. `omittedBytes`: too large to be sent at all; `cutCharacters`: left out of its texts. */
export interface PageEntry extends Entry {
  omittedBytes?: number;
  cutCharacters?: number;
}

export function shrink(entry: Entry): PageEntry {
  const shrinking = new Shrinking();
  const data = shrinking.value(entry.data, "", 0);
  const kept: PageEntry = { kind: String(entry.kind), id: String(entry.id), timestamp: String(entry.timestamp ?? ""), data };
  if (typeof entry.parent_id === "string") kept.parent_id = entry.parent_id;
  if (typeof entry["omittedBytes"] === "number") kept.omittedBytes = entry["omittedBytes"];
  if (shrinking.cut > 0) kept.cutCharacters = shrinking.cut;
  return kept;
}

class Shrinking {
  cut = 0;
  private values = 0;
  private texts = 0;

  value(value: Json | undefined, key: string, depth: number): Json {
    if (typeof value === "string") return this.text(value, key);
    if (value === null || typeof value !== "object") return value ?? null;
    this.values += 1;
    if (depth >= MAX_DEPTH || this.values > MAX_VALUES) {
      this.cut += 1;
      return "… (nested too deep to show)";
    }
    if (Array.isArray(value)) {
      const shown = value.slice(0, MAX_VALUES).map((item) => this.value(item, key, depth + 1));
      if (value.length > shown.length) {
        this.cut += value.length - shown.length;
        shown.push(`… (${value.length - shown.length} more)`);
      }
      return shown;
    }
    const kept: { [key: string]: Json } = {};
    let left = MAX_VALUES;
    for (const [name, member] of Object.entries(value)) {
      if (left-- === 0) {
        this.cut += 1;
        break;
      }
      // defineProperty: a key may be called __proto__
      Object.defineProperty(kept, name.length > 1000 ? `${name.slice(0, 999)}…` : name, {
        value: this.value(member, name, depth + 1),
        enumerable: true,
        configurable: true,
        writable: true,
      });
    }
    if (kept["data"] === "" && typeof value["data"] === "string" && value["data"] !== "") {
      kept["omittedBytes"] = Math.floor(value["data"].length * 0.75);
    }
    return kept;
  }

  private text(value: string, key: string): string {
    if (key === "data") {
      if (value.length <= MAX_IMAGE) return value;
      this.cut += value.length;
      return "";
    }
    const limit = Math.max(0, Math.min(MAX_TEXT, MAX_TEXTS - this.texts));
    this.texts += Math.min(limit, value.length);
    if (value.length <= limit) return value;
    const end = limit > 0 && isHighSurrogate(value.charCodeAt(limit - 1)) ? limit - 1 : limit;
    this.cut += value.length - end;
    return value.slice(0, end);
  }
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
