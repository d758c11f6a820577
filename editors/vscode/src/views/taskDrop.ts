import { type CancellationToken, type DataTransfer, DataTransferItem, type TreeDragAndDropController, window } from "vscode";
import type { Parts } from "../context";
import type { TaskTarget } from "../model/row";
import { inert } from "../text";
import type { Element } from "./elements";

const MIME = "application/vnd.code.tree.crewlog.tasks";

/** A task that is dropped onto another becomes one that the other waits for. */
export class TaskDrop implements TreeDragAndDropController<Element> {
  readonly dragMimeTypes = [MIME];
  readonly dropMimeTypes = [MIME];

  constructor(private readonly parts: Parts) {}

  handleDrag(elements: readonly Element[], data: DataTransfer): void {
    const tasks = elements.map(({ row }) => row.target?.task).filter((task) => task !== undefined);
    if (tasks.length > 0) data.set(MIME, new DataTransferItem(tasks));
  }

  async handleDrop(onto: Element | undefined, data: DataTransfer, _token: CancellationToken): Promise<void> {
    const dragged = data.get(MIME)?.value as TaskTarget[] | undefined;
    const target = onto?.row.target?.task;
    if (dragged === undefined || dragged.length === 0 || target === undefined) return;
    const blockers = dragged.filter((task) => task.listId === target.listId && task.id !== target.id).map(({ id }) => id);
    if (blockers.length === 0) {
      if (dragged.some((task) => task.listId !== target.listId))
        void window.showWarningMessage("Only a task of the same list can be a blocker.");
      return;
    }
    const { crew, report } = this.parts;
    const { listId, id } = target;
    try {
      await report.during("Adding the blocker", crew.request("task/update", { listId, id, addBlockedBy: blockers }));
    } catch (error) {
      await report.failed("No blocker was added", error);
      return;
    }
    const names = blockers.map((blocker) => `#${blocker}`).join(", ");
    const chosen = await window.showInformationMessage(inert(`#${id} now waits for ${names}.`), "Undo");
    if (chosen !== "Undo") return;
    try {
      await crew.request("task/update", { listId, id, removeBlockedBy: blockers });
    } catch (error) {
      await report.failed("The blocker was not removed", error);
    }
  }
}
