import { ErrorCodes, type ErrorData, type ErrorKind } from "./protocol";

const kindOfCode = new Map<number, string>(Object.entries(ErrorCodes).map(([kind, code]) => [code, kind]));

/** An error that the server answered. Branch on `kind`; `data` has the facts. `kind` is `unavailable` where no server answered. */
export class CrewError extends Error {
  constructor(
    readonly kind: ErrorKind | "unavailable",
    message: string,
    readonly data: Record<string, unknown> = {},
  ) {
    super(message);
    this.name = "CrewError";
  }

  is<K extends keyof ErrorData>(kind: K): this is CrewError & { data: ErrorData[K] } {
    return this.kind === kind;
  }
}

/** The error of a reply; null for what is no reply's. */
export function fromReply(code: number, message: string, data: unknown): CrewError | null {
  const facts = typeof data === "object" && data !== null ? (data as Record<string, unknown>) : {};
  const kind = typeof facts.kind === "string" ? facts.kind : kindOfCode.get(code);
  return kind === undefined || !Object.hasOwn(ErrorCodes, kind) ? null : new CrewError(kind as ErrorKind, message, facts);
}

/** What happened and what to do about it, as one or two sentences for a person. Not yet safe to show: see `inert` in `text.ts`. */
export function explain(error: unknown): string {
  if (!(error instanceof CrewError)) {
    return error instanceof Error ? error.message : String(error);
  }
  if (error.is("alreadyClaimed"))
    return `Task ${error.data.id} is held by ${error.data.owner}. Release it first, or wait until it is given back.`;
  if (error.is("alreadyResolved")) return `Task ${error.data.id} is completed. Reopen it to work on it again.`;
  if (error.is("blocked")) {
    const ids = error.data.blockedBy.map((id) => `#${id}`).join(", ");
    return `Task ${error.data.id} waits for ${ids}. Complete ${error.data.blockedBy.length > 1 ? "those" : "that"} first, or remove the blocker.`;
  }
  if (error.is("dependencyCycle"))
    return `The tasks would wait for each other: ${error.data.path.map((id) => `#${id}`).join(" → ")}. Nothing was changed.`;
  if (error.is("leaseLost"))
    return `${error.data.owner} no longer holds task ${error.data.id}: the lease lapsed, or somebody took it. Nothing was changed.`;
  if (error.is("taskNotFound")) return `Task ${error.data.id} is not there any more.`;
  if (error.is("sessionNotFound"))
    return `Session ${error.data.sessionId} is not there. If it was deleted, "Restore Deleted Session" brings it back.`;
  if (error.is("sessionCorrupt")) {
    const { path, line, reason } = error.data;
    const where = line > 0 ? `Line ${line} of ${path}` : path;
    return `${where} cannot be read: ${reason}. The file is left as it is; “crewlog doctor” tells more.`;
  }
  if (error.is("leafMoved")) return "The session was continued meanwhile. Look at its end, and try again.";
  if (error.is("planChanged")) return "The plan was changed by somebody else meanwhile. Look at it, and try again.";
  if (error.is("invalidName")) return `"${error.data.name}" cannot be a name: ${error.data.reason}.`;
  if (error.is("storageFailed"))
    return `The system refused: ${error.data.reason} (${error.data.errno}, ${error.data.path}). Nothing was changed.`;
  if (error.is("busy")) {
    const { client, pid } = error.data.holder;
    const who = client !== undefined ? `${client} (process ${pid})` : pid !== undefined ? `process ${pid}` : "another program";
    return `${who} holds the lock on ${error.data.path} for more than 10 seconds. Try again when it is done.`;
  }
  if (error.is("tooLarge")) return `That is over the limit of ${error.data.limit} bytes.`;
  return error.message;
}
