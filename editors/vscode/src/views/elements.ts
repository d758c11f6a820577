// What VS Code is given for the rows of a view. It knows a row by the object that it was given for it, so that object lasts as long as the
// row. Told that something changed below an element, VS Code forgets what is there until it has asked again, and a command that somebody
// chooses on one of those rows meanwhile comes without its row: it is told of as little as can be.
import type { Row } from "../model/row";

/** One row of a view: the same object from when VS Code first asks for it until the row is gone. */
export interface Element {
  readonly key: string;
  /** As it is now. */
  row: Row;
  parent: Element | undefined;
  /** Those that VS Code was last given; undefined before it has asked. */
  children: Element[] | undefined;
}

/** Where VS Code shows what is not so any more. `root` stands for the top of the view. */
export interface Changes {
  /** Rows that look different. */
  looks: Element[];
  /** Below these stand other rows, or in another order. */
  below: (Element | "root")[];
}

interface Known extends Element {
  parent: Known | undefined;
  children: Known[] | undefined;
  /** How VS Code was last given it, or told that it looks. */
  look: string;
  /** The keys of what VS Code was last given below it, or told that there is. */
  below: string;
  /** Whether VS Code has its children now. */
  told: boolean;
}

export class Elements {
  private readonly byKey = new Map<string, Known>();
  private readonly root: Known = { ...known({ key: "", label: "" }, undefined), told: true };
  private given = false;

  /** Whether there were rows at least once. */
  get any(): boolean {
    return this.given;
  }

  /** The rows as they are now. The result says what VS Code shows that differs; what of that it is told must be told here, too, by `told`. */
  take(rows: Row[]): Changes {
    this.given = true;
    const changes: Changes = { looks: [], below: [] };
    this.root.row = { ...this.root.row, children: () => rows };
    this.compare(this.root, changes);
    return changes;
  }

  /** VS Code was told of these changes. They are changes no more, though it is only yet to ask. */
  told({ looks, below }: Changes): void {
    for (const element of looks as Known[]) element.look = lookOf(element.row);
    for (const element of below) this.of(element).below = keys(rowsBelow(this.of(element)));
  }

  /** VS Code asks what stands below an element. */
  below(of: Element | "root"): Element[] {
    const parent = this.of(of);
    const before = parent.children ?? [];
    const now: Known[] = [];
    for (const row of rowsBelow(parent)) {
      const there = this.byKey.get(row.key);
      // VS Code still has it in another place, and must not have it twice; when it has asked there, it is told of this one
      if (there !== undefined && there.parent !== parent && this.isShown(there)) continue;
      const element = there ?? known(row, parent);
      element.row = row;
      element.parent = parent;
      this.byKey.set(row.key, element);
      now.push(element);
    }
    parent.children = now;
    parent.told = true;
    parent.below = keys(now);
    for (const element of before) if (element.parent === parent && !now.includes(element)) this.drop(element);
    return now;
  }

  /** Whether VS Code was not given all that stands below an element: some of it is still somewhere else for it. */
  lacks(of: Element): boolean {
    return keys(rowsBelow(of)) !== (of as Known).below;
  }

  /** VS Code asks how an element looks. It does so when it is first given it, and when it has forgotten what is below it. */
  look(of: Element): Row {
    const element = of as Known;
    element.look = lookOf(element.row);
    element.told = false;
    return element.row;
  }

  parent(of: Element): Element | undefined {
    return of.parent === this.root ? undefined : of.parent;
  }

  private of(element: Element | "root"): Known {
    return element === "root" ? this.root : (element as Known);
  }

  private compare(parent: Known, changes: Changes): void {
    if (parent.children === undefined) return;
    const rows = rowsBelow(parent);
    if (keys(rows) !== parent.below) changes.below.push(parent === this.root ? "root" : parent);
    const byKey = new Map(rows.map((row) => [row.key, row]));
    for (const element of parent.children) {
      const row = byKey.get(element.key);
      if (row === undefined || element.parent !== parent) continue;
      element.row = row;
      if (lookOf(row) !== element.look) changes.looks.push(element);
      this.compare(element, changes);
    }
  }

  private isShown(element: Known): boolean {
    for (let at = element.parent; at !== undefined; at = at.parent) if (!at.told) return false;
    return true;
  }

  private drop(element: Known): void {
    this.byKey.delete(element.key);
    for (const child of element.children ?? []) if (child.parent === element) this.drop(child);
  }
}

function known(row: Row, parent: Known | undefined): Known {
  return { key: row.key, row, parent, children: undefined, look: "", below: "", told: false };
}

/** The rows below; of several with one key, as damaged files can make them, the first. */
function rowsBelow(element: Element): Row[] {
  const rows = new Map<string, Row>();
  for (const row of element.row.children?.() ?? []) if (!rows.has(row.key)) rows.set(row.key, row);
  return [...rows.values()];
}

/** All that is to be seen of a row, or that menus ask for. Whether it is unfolded at first does not change what is there. */
function lookOf({ key: _key, children, expanded: _expanded, target: _target, ...shown }: Row): string {
  return JSON.stringify([shown, children !== undefined]);
}

function keys(rows: readonly { key: string }[]): string {
  return JSON.stringify(rows.map(({ key }) => key));
}
