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

/** Changes that come closer together than this are shown as one. */
const GATHER_MS = 80;

/** Shows rows as a tree. `rows` gives those of the root, `open` reads what a row needs before its children can be told. */
export class RowTree implements TreeDataProvider<Row>, Disposable {
  private readonly changed = new EventEmitter<undefined>();
  private readonly parents = new Map<string, Row>();
  private timer: NodeJS.Timeout | undefined;
  private roots: Row[] | undefined;

  readonly onDidChangeTreeData = this.changed.event;

  constructor(
    private readonly rows: () => Promise<Row[]> | Row[],
    private readonly open: (row: Row) => Promise<void> = async () => {},
    private readonly fresh: (row: Row) => Row[] = (row) => row.children?.() ?? [],
  ) {}

  /** What is shown is not true any more. */
  refresh(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.changed.fire(undefined);
    }, GATHER_MS);
  }

  getTreeItem(row: Row): TreeItem {
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
    if (row.run !== undefined) item.command = { command: row.run.command, title: row.run.title, arguments: row.run.args };
    return item;
  }

  async getChildren(row?: Row): Promise<Row[]> {
    if (row === undefined) {
      this.parents.clear();
      this.roots = await this.rows();
      return this.roots;
    }
    await this.open(row);
    const children = this.fresh(row);
    for (const child of children) this.parents.set(child.key, row);
    return children;
  }

  getParent(row: Row): Row | undefined {
    return this.parents.get(row.key);
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.changed.dispose();
  }
}

function iconOf(icon: NonNullable<Row["icon"]>): ThemeIcon | Uri {
  if ("svg" in icon) return Uri.parse(`data:image/svg+xml;base64,${Buffer.from(icon.svg).toString("base64")}`);
  return new ThemeIcon(icon.name, icon.color === undefined ? undefined : new ThemeColor(icon.color));
}
