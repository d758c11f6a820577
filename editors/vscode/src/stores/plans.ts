import type { Crew } from "../crew";
import type { PlanInfo } from "../protocol";
import { Coalesced, Emitter } from "./emitter";

/** The plans, the last changed first. They belong to no project. */
export class Plans {
  private readonly changed = new Emitter();
  private readonly refreshing: Coalesced;
  private readonly subscriptions: { dispose(): void }[];

  readonly onDidChange = this.changed.event;
  all: PlanInfo[] = [];
  loaded = false;
  tried = false;

  constructor(
    private readonly crew: Crew,
    failed: (error: unknown) => void,
  ) {
    const tried = (error: unknown) => {
      this.tried = true;
      failed(error);
      this.changed.fire();
    };
    this.refreshing = new Coalesced(() => this.read(), tried);
    this.subscriptions = [
      crew.onDidReconnect(() => void this.refresh()),
      crew.onNotification("plan/didChange", () => void this.refresh()), // it does not tell the size
    ];
  }

  dispose(): void {
    for (const subscription of this.subscriptions) subscription.dispose();
  }

  refresh(): Promise<void> {
    return this.refreshing.request();
  }

  private async read(): Promise<void> {
    this.all = (await this.crew.request("plan/list", {})).plans;
    this.loaded = this.tried = true;
    this.changed.fire();
  }
}
