// Telling the user: errors with what to do, progress on what takes long.
import { commands, type LogOutputChannel, ProgressLocation, window } from "vscode";
import { CrewError, explain } from "./errors";
import { inert } from "./text";

/** Nothing is said of what is done within this time. */
const QUICK_MS = 300;

export class Reporter {
  private lastFailure = "";
  private lastAt = 0;

  constructor(private readonly log: LogOutputChannel) {}

  /** Something that the user asked for failed. */
  async failed(doing: string, error: unknown): Promise<void> {
    if (isCancellation(error)) return;
    this.log.error(`${doing}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
    const unavailable = error instanceof CrewError && error.kind === "unavailable";
    const buttons = unavailable ? ["Restart Server", "Show Log"] : ["Show Log"]; // without a button VS Code cuts the text to one line
    const chosen = await window.showErrorMessage(inert(`${doing}: ${explain(error)}`), ...buttons);
    if (chosen === "Restart Server") await commands.executeCommand("crewlog.server.restart");
    if (chosen === "Show Log") this.log.show();
  }

  /** A view could not be read. The same failure is told once in a while, not at each change. */
  readonly viewFailed = (error: unknown): void => {
    if (isCancellation(error) || (error instanceof CrewError && error.kind === "unavailable")) {
      this.log.warn(explain(error)); // the views and the status bar show how the server is
      return;
    }
    const told = explain(error);
    if (told === this.lastFailure && Date.now() - this.lastAt < 60_000) return;
    this.lastFailure = told;
    this.lastAt = Date.now();
    void this.failed("Not all can be shown", error);
  };

  /** Does something, with a notification of progress once it takes longer than 300 ms. */
  async during<T>(title: string, work: Promise<T>): Promise<T> {
    const timer = setTimeout(
      () =>
        void window.withProgress({ location: ProgressLocation.Notification, title: inert(title) }, () =>
          work.then(
            () => undefined,
            () => undefined,
          ),
        ),
      QUICK_MS,
    );
    try {
      return await work;
    } finally {
      clearTimeout(timer);
    }
  }
}

function isCancellation(error: unknown): boolean {
  return error instanceof CrewError && error.kind === "requestCancelled";
}
