/**
 * Markdown as nodes of a page. The parser's tokens become elements of a short list by `createElement`, their texts by text nodes: no HTML is
 * ever parsed, a link is its text with the address beside it, and a picture is its description.
 */

import MarkdownIt, { type Token } from "markdown-it";
import { textNodes } from "./page/dom";

const parser = new MarkdownIt({ html: false, linkify: false, breaks: true });
/** Beyond this, a text is shown as it stands: parsing it would hold the page up. */
export const MAX_MARKDOWN = 60_000;

/** Elements that a token may become. Anything else becomes a `div`. */
const ELEMENTS = new Set("p h1 h2 h3 h4 h5 h6 blockquote ul ol li table thead tbody tr th td strong em s hr pre code".split(" "));

export function markdown(text: string): DocumentFragment {
  const fragment = document.createDocumentFragment();
  append(fragment, parser.parse(text, {}));
  return fragment;
}

function append(root: DocumentFragment | HTMLElement, tokens: readonly Token[]): void {
  const open: { node: Node; href?: string }[] = [{ node: root }];
  const top = () => open.at(-1)?.node ?? root;
  for (const token of tokens) {
    if (token.hidden) continue;
    if (token.type === "inline") {
      append(top() as HTMLElement, token.children ?? []);
    } else if (token.type === "link_open") {
      const link = document.createElement("span");
      link.className = "link";
      top().appendChild(link);
      open.push({ node: link, href: String(token.attrGet("href") ?? "") });
    } else if (token.type === "link_close") {
      const link = open.length > 1 ? open.pop() : undefined;
      const href = decoded(link?.href ?? "");
      if (link && href && link.node.textContent !== href) top().appendChild(aside(` (${href})`));
    } else if (token.nesting === 1) {
      const element = elementFor(token.tag);
      if (token.tag === "ol" && token.attrGet("start")) (element as HTMLOListElement).start = Number(token.attrGet("start")) || 1;
      if (/text-align:\s*(right|center)/.test(String(token.attrGet("style") ?? ""))) element.classList.add("aligned-end");
      top().appendChild(element);
      open.push({ node: element });
    } else if (token.nesting === -1) {
      if (open.length > 1) open.pop();
    } else {
      top().appendChild(leaf(token));
    }
  }
}

function leaf(token: Token): Node {
  switch (token.type) {
    case "softbreak":
    case "hardbreak":
      return document.createElement("br");
    case "hr":
      return document.createElement("hr");
    case "code_inline": {
      const code = document.createElement("code");
      code.append(textNodes(token.content));
      return code;
    }
    case "fence":
    case "code_block": {
      const block = document.createElement("pre");
      block.tabIndex = 0;
      const code = document.createElement("code");
      code.append(textNodes(token.content.replace(/\n$/, "")));
      block.append(code);
      return block;
    }
    case "image":
      return aside(`[image: ${token.content} ${decoded(String(token.attrGet("src") ?? ""))}]`);
    default:
      return textNodes(token.content);
  }
}

function elementFor(tag: string): HTMLElement {
  return document.createElement(ELEMENTS.has(tag) ? tag : "div");
}

function aside(text: string): HTMLElement {
  const element = document.createElement("span");
  element.className = "aside";
  element.append(textNodes(text));
  return element;
}

/** An address as it was written, where the parser has encoded it. */
function decoded(address: string): string {
  try {
    return decodeURI(address);
  } catch {
    return address; // not an encoding of text
  }
}
