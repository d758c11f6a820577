/** A session's page with its feed, as `src/session/index.ts` joins them. */

import { join } from "node:path";
import type { Browser } from "playwright-core";
import { type PageFeed, SessionFeed } from "../../src/session/feed";
import { pageHtml } from "../../src/session/html";
import type { FromPage, ToPage } from "../../src/session/messages";
import { TranscriptFeed } from "../../src/session/transcript";
import { type Frame, openFrame, type Server, SOURCES, type Theme } from "./harness";

export interface PageFrame<F extends PageFeed> extends Frame {
  feed: F;
  /** What the page asked of the extension: copy, fork, rewind and so on. */
  asked: FromPage[];
}

export type SessionFrame = PageFrame<SessionFeed>;

interface Options {
  theme?: Theme;
  state?: unknown;
  width?: number;
  height?: number;
}

export function openSession(
  browser: Browser,
  server: Pick<Server, "request" | "on">,
  sessionId: string,
  options: Options = {},
): Promise<SessionFrame> {
  return open(
    browser,
    (post) => {
      const feed = new SessionFeed(server, sessionId, post);
      server.on("session/didChange", (change) => feed.didChange(change));
      return feed;
    },
    { sessionId },
    options,
  );
}

export function openTranscript(
  browser: Browser,
  server: Pick<Server, "request" | "on">,
  listId: string,
  agent: string,
  options: Options = {},
): Promise<PageFrame<TranscriptFeed>> {
  return open(browser, (post) => new TranscriptFeed(server, listId, agent, post), { transcript: { listId, agent } }, options);
}

async function open<F extends PageFeed>(
  browser: Browser,
  feedOf: (post: (message: ToPage) => void) => F,
  target: Record<string, unknown>,
  options: Options,
): Promise<PageFrame<F>> {
  const asked: FromPage[] = [];
  const waiting: ToPage[] = [];
  let post = (message: ToPage): void => void waiting.push(message);
  const feed = feedOf((message) => post(message));
  const frame = await openFrame(browser, {
    html: pageHtml({ script: "/session.js", style: "/session.css", ...SOURCES, target }),
    folder: join("dist", "pages"),
    ...options,
    receive: (message: FromPage) => {
      if (message.type.startsWith("copy") || message.type === "fork" || message.type === "rewind" || message.type === "openWhole")
        asked.push(message);
      else void feed.handle(message);
    },
  });
  let order = Promise.resolve();
  post = (message) => {
    // A page that is closed meanwhile does not take messages any more, as in VS Code.
    order = order.then(() => frame.post(message)).catch(() => undefined);
  };
  for (const message of waiting) post(message);
  await frame.page.waitForSelector("body:not(.loading)");
  return { ...frame, feed, asked };
}
