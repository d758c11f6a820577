/** The page's skeleton. What stands in a session never comes near it, but for what the page is of, as an attribute. */

export interface PageSources {
  script: string;
  style: string;
  /** What the style sheet may be loaded from. */
  styleSource: string;
  nonce: string;
  /** What the page is of, as its saved state names it: a page that could show nothing yet comes back after a reload, too. */
  target: Record<string, unknown>;
}

/** A `meta` element that the page's script reads. */
export function targetMeta(target: Record<string, unknown>): string {
  const content = JSON.stringify(target).replace(/[&<>"']/g, (found) => `&#${found.charCodeAt(0)};`);
  return `<meta name="crewlog-target" content="${content}">`;
}

export function pageHtml(sources: PageSources): string {
  const policy = `default-src 'none'; img-src data:; style-src ${sources.styleSource}; script-src 'nonce-${sources.nonce}'; form-action 'none'; base-uri 'none'`;
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="UTF-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="${sources.style}">
${targetMeta(sources.target)}
<title>Session</title>
</head>
<body class="loading">
<header id="top">
  <div id="names"><h1 id="title" dir="auto"></h1><div id="facts"></div></div>
  <div id="tools" role="toolbar" aria-label="Session">
    <label id="branching" hidden><span class="sr-only">Branch</span><select id="branches" title="Branches of this session"></select></label>
    <button id="folds" type="button" class="tool-button" aria-pressed="false" title="Fold or unfold everything (o)">Unfold all</button>
    <button id="raw" type="button" class="tool-button" aria-pressed="false" title="Show Markdown as it is written (m)">Source</button>
    <button id="find" type="button" class="tool-button" title="Find in this session (Ctrl+F or /)">Find</button>
  </div>
</header>
<div id="finder" role="search" hidden>
  <input type="text" aria-label="Find in this session" placeholder="Find" spellcheck="false">
  <output aria-live="polite"></output>
  <button type="button" class="tool-button" data-find="previous" title="Previous (Shift+Enter)">Previous</button>
  <button type="button" class="tool-button" data-find="next" title="Next (Enter)">Next</button>
  <button type="button" class="tool-button" data-find="close" title="Close (Escape)">Close</button>
</div>
<div id="notice" role="status" hidden></div>
<main id="view">
  <button id="earlier" type="button" class="text-button" hidden>Load earlier entries</button>
  <div id="feed" role="feed" aria-label="Conversation" aria-busy="true"></div>
  <p id="nothing">Nothing was said in this session yet. It shows here as soon as an agent writes.</p>
</main>
<div id="failure" role="alert"></div>
<p id="waiting" role="status">Loading the session…</p>
<button id="latest" type="button" hidden>Jump to latest</button>
<footer id="bottom"><span id="status"></span><span class="hint">? for keys</span></footer>
<div id="live" class="sr-only" aria-live="polite"></div>
<div id="help" role="dialog" aria-modal="true" aria-label="Keys" hidden>
  <h2>Keys</h2>
  <dl>
    <dt>↑ ↓ or k j</dt><dd>previous, next entry</dd>
    <dt>Home, End</dt><dd>first entry, latest entry</dd>
    <dt>Enter</dt><dd>fold or unfold the entry</dd>
    <dt>o</dt><dd>fold or unfold everything</dd>
    <dt>m</dt><dd>Markdown as it is written</dd>
    <dt>Ctrl+F or /</dt><dd>find; n and N go through what was found</dd>
    <dt>c</dt><dd>copy the entry's text</dd>
    <dt class="of-session">y</dt><dd class="of-session">copy the entry's id</dd>
    <dt class="of-session">F, R</dt><dd class="of-session">fork from the entry, rewind to it</dd>
    <dt class="of-session">b</dt><dd class="of-session">choose a branch</dd>
  </dl>
  <button type="button" class="button" data-action="close-help">Close</button>
</div>
<script nonce="${sources.nonce}" src="${sources.script}"></script>
</body>
</html>`;
}
