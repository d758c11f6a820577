/** The page's skeleton. What stands in a task never comes near it, but for the list's name, as an attribute. */

import { type PageSources, targetMeta } from "../session/html";

export function graphHtml(sources: PageSources): string {
  // The layout is worked out in a worker, which a webview may start from a blob alone.
  const policy = `default-src 'none'; style-src ${sources.styleSource}; script-src 'nonce-${sources.nonce}'; worker-src blob:; form-action 'none'; base-uri 'none'`;
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="UTF-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="${sources.style}">
${targetMeta(sources.target)}
<title>Dependency graph</title>
</head>
<body class="loading">
<header id="top">
  <div id="names"><h1 id="title" dir="auto"></h1><div id="facts"></div></div>
  <div id="tools" role="toolbar" aria-label="Graph">
    <button id="completed" type="button" class="tool-button" aria-pressed="true" title="Show completed tasks (d)">Completed</button>
    <button id="as-list" type="button" class="tool-button" aria-pressed="false" title="Show the tasks as a list (l)">List</button>
    <button id="turn" type="button" class="tool-button" title="Let the graph go down, or to the right (t)">Turn</button>
    <span id="zooming" role="group" aria-label="Zoom">
      <button id="zoom-out" type="button" class="tool-button" aria-label="Zoom out" title="Zoom out (-)">−</button>
      <button id="zoom" type="button" class="tool-button" title="Zoom to 100 % (1)">100%</button>
      <button id="zoom-in" type="button" class="tool-button" aria-label="Zoom in" title="Zoom in (+)">+</button>
      <button id="fit" type="button" class="tool-button" title="Show all of it (0)">Fit</button>
    </span>
  </div>
</header>
<div id="notice" role="status" hidden></div>
<div id="circles" role="status" hidden></div>
<main id="view">
  <div id="canvas"><div id="graph" role="application" aria-label="Dependency graph" aria-describedby="keys"><svg id="lines" aria-hidden="true"></svg></div></div>
</main>
<section id="list" aria-label="Tasks" hidden></section>
<div id="nothing"><p id="nothing-text"></p><button id="nothing-show" type="button" class="button" hidden>Show completed tasks</button></div>
<div id="failure" role="alert"></div>
<p id="waiting" role="status">Loading the tasks…</p>
<footer id="bottom"><ul id="legend" aria-label="Legend"></ul><span id="keys" class="hint">Arrow keys follow the arrows · Enter opens · + − zoom · 0 fit</span></footer>
<div id="live" class="sr-only" aria-live="polite"></div>
<script nonce="${sources.nonce}" src="${sources.script}"></script>
</body>
</html>`;
}
