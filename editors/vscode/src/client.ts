import { type CancellationToken, type Disposable, EventEmitter, extensions, type LogOutputChannel, type Uri, workspace } from "vscode";
import { CloseAction, ErrorAction, LanguageClient, type LanguageClientOptions, ResponseError, State } from "vscode-languageclient/node";
import type { Crew, CrewState } from "./crew";
import { CrewError, fromReply } from "./errors";
import { type Command, locate, NoServer } from "./locate";
import { type Capabilities, type InitializationOptions, type Methods, type Notifications, protocolVersion } from "./protocol";
import { settings } from "./settings";

const CRASHES = 5;
const CRASHES_WITHIN_MS = 180_000;
/** A server that dies at once is not started in a busy loop. */
const FIRST_PAUSE_MS = 250;
/** How long the Python extension may take to say which environment is selected. */
const PYTHON_MS = 10_000;

const NOTIFICATIONS: (keyof Notifications)[] = ["task/didChange", "roster/didChange", "plan/didChange", "session/didChange"];
/** Methods that change nothing, so that asking twice does no harm. */
const READS = new Set<keyof Methods>([
  "crewlog/status",
  "session/list",
  "session/mostRecent",
  "session/open",
  "session/snapshot",
  "session/entries",
  "session/branches",
  "session/search",
  "session/export",
  "session/stats",
  "history/get",
  "history/list",
  "history/navigate",
  "plan/list",
  "plan/load",
  "plan/path",
  "plan/generateName",
  "task/get",
  "task/list",
  "task/lists",
  "task/findClaimable",
  "roster/get",
  "transcript/load",
  "transcript/list",
]);

/** Tells the log what is wrong; the user is told by those who asked, with what to do. */
class QuietClient extends LanguageClient {
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }
}

/** The server of this window: started, and started again when it died. */
export class Client implements Crew, Disposable {
  private readonly stateChanged = new EventEmitter<CrewState>();
  private readonly reconnected = new EventEmitter<void>();
  private readonly gaveUp = new EventEmitter<string>();
  private readonly listeners = new Map<keyof Notifications, Set<(params: never) => void>>();
  private readonly crashes: number[] = [];
  private running: LanguageClient | undefined;
  private turn: Promise<void> = Promise.resolve();
  private pause: NodeJS.Timeout | undefined;
  private disposed = false;
  private environmentChanged: Disposable | undefined;
  /** Whether a server was ready since the last restart by hand. */
  private wasReady = false;

  readonly onDidChangeState = this.stateChanged.event;
  readonly onDidReconnect = this.reconnected.event;
  /** The server does not run and is not started again by itself; with the reason, for a person. */
  readonly onDidGiveUp = this.gaveUp.event;
  state: CrewState = "starting";
  capabilities: Capabilities | undefined;

  constructor(private readonly log: LogOutputChannel) {}

  /** Stops the server if one runs, and starts one. Requests to restart that come meanwhile wait for their turn. */
  restart(): Promise<void> {
    this.crashes.length = 0;
    this.wasReady = false;
    return this.queue(async () => {
      await this.stop();
      await this.start();
    });
  }

  async request<M extends keyof Methods>(
    method: M,
    params: Methods[M]["params"],
    token?: CancellationToken,
  ): Promise<Methods[M]["result"]> {
    for (let again = READS.has(method); ; again = false) {
      const client = await this.ready();
      try {
        return await (token === undefined
          ? client.sendRequest<Methods[M]["result"]>(method, params)
          : client.sendRequest<Methods[M]["result"]>(method, params, token));
      } catch (error) {
        const answered = error instanceof ResponseError ? fromReply(error.code, error.message, error.data) : null;
        if (answered !== null) throw answered;
        if (!again || token?.isCancellationRequested) {
          const lost = READS.has(method) ? "" : " Whether the change was made is not known: look before you repeat it.";
          throw new CrewError("unavailable", `The server ended before it answered.${lost}`);
        }
        this.log.info(`${method} is asked again: ${error instanceof Error ? error.message : error}`);
        await this.died(client);
      }
    }
  }

  onNotification<N extends keyof Notifications>(method: N, handler: (params: Notifications[N]) => void): Disposable {
    const handlers = this.listeners.get(method) ?? new Set();
    this.listeners.set(method, handlers);
    const entry = (params: never) => handler(params as never);
    handlers.add(entry);
    return { dispose: () => handlers.delete(entry) };
  }

  async dispose(): Promise<void> {
    this.disposed = true;
    clearTimeout(this.pause);
    this.environmentChanged?.dispose();
    await this.queue(() => this.stop());
    this.stateChanged.dispose();
    this.reconnected.dispose();
    this.gaveUp.dispose();
  }

  private queue(work: () => Promise<void>): Promise<void> {
    this.turn = this.turn.then(work, work);
    return this.turn;
  }

  private become(state: CrewState): void {
    if (this.state === state) return;
    this.state = state;
    this.stateChanged.fire(state);
  }

  /** The client that can be asked, after waiting for one that is starting. */
  private async ready(): Promise<LanguageClient> {
    while (this.state === "starting") {
      await new Promise<void>((resolve) => {
        const once = this.onDidChangeState(() => {
          once.dispose();
          resolve();
        });
      });
    }
    if (this.state !== "ready" || this.running === undefined) {
      throw new CrewError("unavailable", "The crewlog server does not run. Restart it, or look at its log for the reason.");
    }
    return this.running;
  }

  /** Waits until it is noticed that this client's server is gone. */
  private async died(client: LanguageClient): Promise<void> {
    for (let i = 0; i < 100 && this.running === client; i++) await new Promise((resolve) => setTimeout(resolve, 20));
  }

  private async start(): Promise<void> {
    if (this.disposed) return;
    this.become("starting");
    let command: Command;
    try {
      command = locate(await this.places());
    } catch (error) {
      if (!(error instanceof NoServer)) throw error;
      this.log.error(error.message);
      this.become("missing");
      this.gaveUp.fire(error.message);
      return;
    }
    this.log.info(`starting ${command.command} ${command.args.join(" ")}, found by ${command.origin}`);
    const client = this.make(command);
    this.running = client;
    try {
      await client.start();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.log.error(`the server did not start: ${reason}`);
      if (this.running === client && this.wasReady) {
        this.crashed(client); // what has run before may run again
      } else if (this.running === client) {
        this.running = undefined;
        this.become("failed");
        this.gaveUp.fire(`The crewlog server did not start: ${reason}`);
      }
      return;
    }
    if (this.running !== client) return; // it died meanwhile
    this.capabilities = (client.initializeResult?.capabilities.experimental as { crewlog?: Capabilities } | undefined)?.crewlog;
    if (this.capabilities?.protocolVersion !== protocolVersion) {
      const problem = mismatch(command.command, this.capabilities?.protocolVersion);
      await this.stop();
      this.become("failed");
      this.log.error(problem);
      this.gaveUp.fire(problem);
      return;
    }
    this.wasReady = true;
    this.become("ready");
    this.reconnected.fire();
  }

  private async stop(): Promise<void> {
    clearTimeout(this.pause);
    const client = this.running;
    this.running = undefined;
    this.capabilities = undefined;
    this.become("stopped");
    if (client !== undefined) {
      try {
        await client.dispose();
      } catch (error) {
        this.log.warn(`the server did not end in order: ${error instanceof Error ? error.message : error}`);
      }
    }
  }

  /** The connection ended without having been asked to. */
  private crashed(client: LanguageClient): void {
    if (this.running !== client || this.disposed) return;
    this.running = undefined;
    this.capabilities = undefined;
    if (!this.wasReady) {
      this.log.error("the server ended before it was ready");
      this.become("failed");
      this.gaveUp.fire("The crewlog server ended before it was ready. Its log has what it said last.");
      return;
    }
    const now = Date.now();
    this.crashes.push(now);
    while ((this.crashes[0] ?? now) < now - CRASHES_WITHIN_MS) this.crashes.shift();
    if (this.crashes.length > CRASHES) {
      this.log.error(`the server ended ${this.crashes.length} times within three minutes`);
      this.become("failed");
      this.gaveUp.fire("The crewlog server ended again and again. Its log may say why.");
      return;
    }
    this.log.warn("the server ended; it is started again");
    this.become("starting");
    this.pause = setTimeout(() => void this.queue(() => this.start()), FIRST_PAUSE_MS * 2 ** (this.crashes.length - 1));
  }

  private make(command: Command): LanguageClient {
    const { home, durability, allProjects } = settings();
    const folders = workspace.workspaceFolders ?? [];
    const options: InitializationOptions = {
      home: home || null,
      cwd: folders.find((folder) => folder.uri.scheme === "file")?.uri.fsPath ?? null,
      durability,
      subscribe: { allProjects: allProjects || folders.length !== 1 },
    };
    const clientOptions: LanguageClientOptions = {
      documentSelector: [],
      initializationOptions: options,
      outputChannel: this.log,
      initializationFailedHandler: () => false,
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => {
          this.crashed(client);
          return { action: CloseAction.DoNotRestart, handled: true };
        },
      },
    };
    const client: LanguageClient = new QuietClient("crewlog", "Crewlog", { command: command.command, args: command.args }, clientOptions);
    client.onDidChangeState(({ newState }) => {
      if (newState === State.Stopped) this.crashed(client);
    });
    for (const method of NOTIFICATIONS) {
      client.onNotification(method, (params: unknown) => {
        for (const handler of [...(this.listeners.get(method) ?? [])]) handler(params as never);
      });
    }
    return client;
  }

  private async places(): Promise<Parameters<typeof locate>[0]> {
    const folders = (workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath);
    const setting = settings().path;
    return {
      setting,
      python: workspace.isTrusted && setting === "" ? await this.python(workspace.workspaceFolders?.[0]?.uri) : undefined,
      path: process.env.PATH ?? "",
      barred: workspace.isTrusted ? [] : folders,
      windows: process.platform === "win32",
    };
  }

  /** The interpreter that the Python extension has selected; undefined without that extension. */
  private async python(folder: Uri | undefined): Promise<string | undefined> {
    const extension = extensions.getExtension<PythonExtension>("ms-python.python");
    if (extension === undefined) return undefined;
    try {
      const { environments } = await inTime(extension.activate());
      this.environmentChanged ??= environments.onDidChangeActiveEnvironmentPath?.(() => void this.restart());
      const found = await inTime(environments.resolveEnvironment(environments.getActiveEnvironmentPath(folder)));
      return found?.executable.uri?.fsPath;
    } catch (error) {
      this.log.warn(`the Python extension does not say which environment is selected: ${error instanceof Error ? error.message : error}`);
      return undefined;
    }
  }
}

/** For a person: which of the two is to be updated. */
function mismatch(command: string, spoken: number | undefined): string {
  if (spoken === undefined) return `${command} is no crewlog server.`;
  const todo = spoken < protocolVersion ? "Update the server: pip install --upgrade crewlog." : "Update this extension.";
  return `${command} speaks version ${spoken} of the protocol; this extension needs version ${protocolVersion}. ${todo}`;
}

/** Views must not stay empty because another extension does not answer. */
async function inTime<T>(answer: Thenable<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${PYTHON_MS / 1000} seconds`)), PYTHON_MS);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** The part of the Python extension's interface that is used here. */
interface PythonExtension {
  environments: {
    onDidChangeActiveEnvironmentPath?(handler: () => void): Disposable;
    getActiveEnvironmentPath(resource?: Uri): { path: string };
    resolveEnvironment(path: { path: string }): Promise<{ executable: { uri?: Uri } } | undefined>;
  };
}
