/** An event like VS Code's, for modules that run without it. */
export class Emitter<T = void> {
  private readonly handlers = new Set<(value: T) => void>();

  readonly event = (handler: (value: T) => void): { dispose(): void } => {
    const entry = (value: T) => handler(value);
    this.handlers.add(entry);
    return { dispose: () => this.handlers.delete(entry) };
  };

  fire(value: T): void {
    for (const handler of [...this.handlers]) handler(value);
  }
}

/** Runs `work` soon, once for all that asked meanwhile, and never twice at a time: what is asked for while it runs makes it run again. */
export class Coalesced {
  private wanted = false;
  private running: Promise<void> | undefined;

  constructor(
    private readonly work: () => Promise<void>,
    private readonly failed: (error: unknown) => void,
    private readonly pauseMs = 50,
  ) {}

  /** Resolves when a run that began after this call has ended. */
  request(): Promise<void> {
    this.wanted = true;
    this.running ??= this.run();
    return this.running;
  }

  private async run(): Promise<void> {
    while (this.wanted) {
      if (this.pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, this.pauseMs));
      this.wanted = false;
      try {
        await this.work();
      } catch (error) {
        this.failed(error);
      }
    }
    this.running = undefined;
  }
}
