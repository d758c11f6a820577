import { age } from "./time";

/** What decides where something stands. `changed`, `begun`: RFC 3339, "" where it is not known. */
export interface Place {
  id: string;
  changed: string;
  begun: string;
}

/**
 * The last changed first. What is being worked on (changed less than a minute ago: its age is "now") stands on top in the order in which it
 * was begun, the newest first: agents that work side by side must not make rows change places under somebody's mouse.
 */
export function newestFirst<T>(items: Iterable<T>, placeOf: (item: T) => Place, now: number): T[] {
  const placed = [...items].map((item) => {
    const { id, changed, begun } = placeOf(item);
    return { item, id, active: age(changed, now) === "now", changed: Date.parse(changed) || 0, begun: Date.parse(begun) || 0 };
  });
  placed.sort(
    (a, b) =>
      Number(b.active) - Number(a.active) ||
      (a.active ? b.begun - a.begun : b.changed - a.changed) ||
      b.begun - a.begun ||
      (a.id < b.id ? -1 : a.id > b.id ? 1 : 0),
  );
  return placed.map(({ item }) => item);
}
