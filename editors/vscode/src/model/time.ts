const MINUTE = 60_000;

/** How long ago, short: "now", "5 min", "3 h", "4 d", "2 wk", "5 mo", "1 yr"; "" for a time that cannot be read. */
export function age(time: string, now: number): string {
  const ms = now - Date.parse(time);
  if (Number.isNaN(ms)) return "";
  const steps: [number, string][] = [
    [365 * 24 * 60 * MINUTE, "yr"],
    [30 * 24 * 60 * MINUTE, "mo"],
    [7 * 24 * 60 * MINUTE, "wk"],
    [24 * 60 * MINUTE, "d"],
    [60 * MINUTE, "h"],
    [MINUTE, "min"],
  ];
  for (const [size, name] of steps) if (ms >= size) return `${Math.floor(ms / size)} ${name}`;
  return "now";
}

/** The day in local time as a heading: "Today", "Yesterday", "Monday 24 August", with the year where it is another one. */
export function dayName(time: string, now: number): string {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return "Without a date";
  const today = new Date(now);
  const days = Math.round((midnight(today) - midnight(date)) / (24 * 60 * MINUTE));
  if (days === 0) return "Today";
  if (days === 1) return "Yesterday";
  const year = date.getFullYear() === today.getFullYear() ? {} : { year: "numeric" as const };
  return date.toLocaleDateString("en-GB", { weekday: "long", day: "numeric", month: "long", ...year }).replace(",", "");
}

/** A sortable name of the local day. */
export function dayKey(time: string): string {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? "" : `${date.getFullYear()}-${date.getMonth() + 1}-${date.getDate()}`;
}

function midnight(date: Date): number {
  return new Date(date.getFullYear(), date.getMonth(), date.getDate()).getTime();
}

/** Milliseconds until the next local midnight: headings of days change then. */
export function untilMidnight(now: number): number {
  const date = new Date(now);
  return new Date(date.getFullYear(), date.getMonth(), date.getDate() + 1).getTime() - now;
}
