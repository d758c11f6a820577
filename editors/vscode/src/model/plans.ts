// What the Plans view shows.
import type { PlanInfo } from "../protocol";
import { line } from "../text";
import { newestFirst } from "./order";
import type { Row } from "./row";
import { age } from "./time";

export function planRows(plans: PlanInfo[], now: number): Row[] {
  const placeOf = ({ name, modified }: PlanInfo) => ({ id: name, changed: modified, begun: "" });
  return newestFirst(plans, placeOf, now).map((plan) => {
    const name = line(plan.name);
    const size =
      plan.size === 0 ? "empty" : plan.size < 1024 ? `${plan.size} B` : `${(plan.size / 1024).toFixed(plan.size < 10_240 ? 1 : 0)} KB`;
    return {
      key: `plan:${plan.name}`,
      label: name,
      description: age(plan.modified, now) + (plan.size === 0 ? " · empty" : ""),
      tooltip: `${name}\n${size}, changed ${new Date(plan.modified).toLocaleString()}\n${line(plan.path, 500)}`,
      spoken: `${name}, changed ${age(plan.modified, now)} ago`,
      icon: { name: "notebook" },
      context: ["plan", "id"],
      run: { command: "crewlog.plan.open", title: "Open Plan", args: [{ plan: plan.name }] },
      target: { plan: plan.name, copy: plan.name },
    };
  });
}

/** Why `name` cannot be a plan's name, as the server would say; undefined when it can. */
export function planNameProblem(name: string, taken: Iterable<string>): string | undefined {
  if (name.trim() === "") return "A plan needs a name.";
  if (name.startsWith(".")) return "A name cannot begin with a dot.";
  if (/[/\\\u0000-\u001f\u007f]/.test(name)) return "A name cannot hold slashes or control characters.";
  if (/[. ]$/.test(name)) return "A name cannot end in a dot or a blank.";
  if (new TextEncoder().encode(name).length > 200) return "That is too long.";
  for (const other of taken) if (other === name) return "There is a plan of that name.";
  return undefined;
}
