import {
  type Disposable,
  EventEmitter,
  ThemeColor,
  ThemeIcon,
  type TreeDataProvider,
  TreeItem,
  TreeItemCollapsibleState,
  Uri,
} from "vscode";
import type { Row } from "../model/row";
import { Coalesced } from "../stores/emitter";
import { type Element, Elements } from "./elements";

/** Changes that come closer together than this are shown as one. */
const GATHER_MS = 50;
/**
 * VS Code waits for 200 ms in which it is told of no further change, but for the first after such a pause: told more often than this, it
 * would show nothing at all while agents are busy.
 */
const QUIET_MS = 250;
/**
 * Rows that come, go and change places do so at most this often. While VS Code asks what is below an element now, it does not know the rows
 * there, and a command that is chosen on one of them then comes without it.
 */
const MOVES_MS = 1000;

export interface RowSource {
  /** The rows at the top, with the others below them. */
  rows(): Promise<Row[]> | Row[];
  /** Reads what a row needs before its children can be told; undefined when nothing is to be read. */
  open?(row: Row): Promise<void> | undefined;
  /** The command that a click on a row runs. It has no arguments: see `clicked` in `index.ts`. */
  click: string;
  failed(error: unknown): void;
}

/** Shows rows as a tree. */
export class RowTree implements TreeDataProvider<Element>, Disposable {
  private readonly changed = new EventEmitter<Element[] | undefined>();
  private readonly elements = new Elements();
  private readonly updating: Coalesced;
  private fired = 0;
  private moved = 0;
  private later: NodeJS.Timeout | undefined;
  private disposed = false;

  readonly onDidChangeTreeData = this.changed.event;

  constructor(private readonly source: RowSource) {
    this.updating = new Coalesced(
      () => this.update(),
      (error) => source.failed(error),
      GATHER_MS,
    );
  }

  /** What is shown is perhaps not true any more. */
  refresh(): void {
    if (!this.disposed) void this.updating.request();
  }

  getTreeItem(element: Element): TreeItem {
    const row = this.elements.look(element);
    const state =
      row.children === undefined
        ? TreeItemCollapsibleState.None
        : row.expanded
          ? TreeItemCollapsibleState.Expanded
          : TreeItemCollapsibleState.Collapsed;
    const item = new TreeItem(row.label, state);
    item.id = row.key;
    item.description = row.description;
    item.tooltip = row.tooltip ?? row.label; // a string is shown as it is; Markdown would be rendered
    if (row.spoken !== undefined) item.accessibilityInformation = { label: row.spoken };
    if (row.icon !== undefined) item.iconPath = iconOf(row.icon);
    if (row.context !== undefined) item.contextValue = row.context.join(" ");
    if (row.run !== undefined) item.command = { command: this.source.click, title: row.run.title };
    return item;
  }

  async getChildren(element?: Element): Promise<Element[]> {
    if (element === undefined) {
      if (!this.elements.any) this.elements.take(await this.source.rows());
      return this.elements.below("root");
    }
    const opening = this.source.open?.(element.row);
    if (opening !== undefined) {
      await opening;
      this.elements.take(await this.source.rows()); // what was made before has no children
      this.refresh();
    }
    const below = this.elements.below(element);
    if (this.elements.lacks(element)) this.refresh();
    return below;
  }

  getParent(element: Element): Element | undefined {
    return this.elements.parent(element);
  }

  dispose(): void {
    this.disposed = true;
    clearTimeout(this.later);
    this.changed.dispose();
  }

  private async update(): Promise<void> {
    const quiet = this.fired + QUIET_MS - Date.now();
    if (quiet > 0) await new Promise((resolve) => setTimeout(resolve, quiet));
    const { looks, below } = this.elements.take(await this.source.rows());
    // an element that is told of loses what is below it
    const alone = looks.filter((element) => !element.children?.length);
    const moves = alone.length < looks.length || below.length > 0;
    const wait = moves ? this.moved + MOVES_MS - Date.now() : 0;
    clearTimeout(this.later);
    if (wait > 0) this.later = setTimeout(() => this.refresh(), wait);
    else if (moves) this.moved = Date.now();
    const told = wait > 0 ? { looks: alone, below: [] } : { looks, below };
    const elements = [...new Set([...told.looks, ...told.below])];
    if (elements.length === 0 || this.disposed) return;
    this.fired = Date.now();
    this.elements.told(told);
    this.changed.fire(elements.includes("root") ? undefined : (elements as Element[]));
  }
}

function iconOf(icon: NonNullable<Row["icon"]>): ThemeIcon | Uri {
  if ("svg" in icon) return Uri.parse(`data:image/svg+xml;base64,${Buffer.from(icon.svg).toString("base64")}`);
  return new ThemeIcon(icon.name, icon.color === undefined ? undefined : new ThemeColor(icon.color));
}
