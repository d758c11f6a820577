/** A session's page with its feed, as `src/session/index.ts` joins them. */

import { join } from "node:path";
import type { Browser } from "playwright-core";
import { SessionFeed } from "../../src/session/feed";
import { pageHtml } from "../../src/session/html";
import type { FromPage, ToPage } from "../../src/session/messages";
import { type Frame, openFrame, type Server, SOURCES, type Theme } from "./harness";

export interface SessionFrame extends Frame {
  feed: SessionFeed;
  /** What the page asked of the extension: copy, fork, rewind and so on. */
  asked: FromPage[];
}

export async function openSession(
  browser: Browser,
  server: Pick<Server, "request" | "on">,
  sessionId: string,
  options: { theme?: Theme; state?: unknown; width?: number; height?: number } = {},
): Promise<SessionFrame> {
  const asked: FromPage[] = [];
  const waiting: ToPage[] = [];
  let post = (message: ToPage): void => void waiting.push(message);
  const feed = new SessionFeed(server, sessionId, (message) => post(message));
  server.on("session/didChange", (change) => feed.didChange(change));
  const frame = await openFrame(browser, {
    html: pageHtml({ script: "/session.js", style: "/session.css", ...SOURCES }),
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
