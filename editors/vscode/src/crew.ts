import type { CancellationToken, Disposable, Event } from "vscode";
import type { Capabilities, Methods, Notifications } from "./protocol";

/**
 * How the server is. `starting`: not asked yet, or after a crash; `missing`: no `crewlog` command was found; `failed`: it does not run,
 * and is not started again by itself.
 */
export type CrewState = "starting" | "ready" | "missing" | "failed" | "stopped";

/** What the extension's parts know of the server. Implemented by `Client`; unit tests give their own. */
export interface Crew {
  readonly state: CrewState;
  readonly onDidChangeState: Event<CrewState>;
  /** Of the server that runs; undefined until it has answered. */
  readonly capabilities: Capabilities | undefined;
  /** A server is ready that was not there before, the first one too: what is shown must be read anew. What was shown stays until then. */
  readonly onDidReconnect: Event<void>;
  /**
   * Asks the server, waiting for one that is starting. A request that only reads is repeated when the server died over it.
   * Rejects with `CrewError` (see `errors.ts`).
   */
  request<M extends keyof Methods>(method: M, params: Methods[M]["params"], token?: CancellationToken): Promise<Methods[M]["result"]>;
  onNotification<N extends keyof Notifications>(method: N, handler: (params: Notifications[N]) => void): Disposable;
}
