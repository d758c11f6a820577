/** A graph's page with its feed, as `src/graph/index.ts` joins them. */

import { join } from "node:path";
import type { Browser } from "playwright-core";
import { GraphFeed } from "../../src/graph/feed";
import { graphHtml } from "../../src/graph/html";
import type { FromGraph, ToGraph } from "../../src/graph/messages";
import { type Frame, openFrame, type Server, SOURCES, type Theme } from "./harness";

export interface GraphFrame extends Frame {
  feed: GraphFeed;
  /** Tasks that the page asked the extension to open. */
  opened: string[];
}

export async function openGraph(
  browser: Browser,
  server: Pick<Server, "request" | "on">,
  listId: string,
  options: { title?: string; theme?: Theme; state?: unknown; width?: number; height?: number } = {},
): Promise<GraphFrame> {
  const opened: string[] = [];
  const waiting: ToGraph[] = [];
  let post = (message: ToGraph): void => void waiting.push(message);
  const feed = new GraphFeed(server, listId, options.title ?? "", (message) => post(message));
  server.on("task/didChange", (change) => feed.didChange(change));
  server.on("session/didChange", (change) => feed.sessionDidChange(change));
  const frame = await openFrame(browser, {
    html: graphHtml({ script: "/graph.js", style: "/graph.css", ...SOURCES, target: { listId, title: options.title ?? "" } }),
    folder: join("dist", "pages"),
    ...options,
    receive: (message: FromGraph) => {
      if (message.type === "open") opened.push(message.id);
      else void feed.handle(message);
    },
  });
  let order = Promise.resolve();
  post = (message) => {
    // A page that is closed meanwhile does not take messages any more, as in VS Code.
    order = order.then(() => frame.post(message)).catch(() => undefined);
  };
  for (const message of waiting) post(message);
  await frame.page.waitForSelector("body:not(.loading, .laying-out)");
  return { ...frame, feed, opened };
}
