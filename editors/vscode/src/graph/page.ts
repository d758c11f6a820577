// The dependency graph's script, in the webview. It gets tasks, has them laid out, and keeps what is looked at where it is.
import "./page.css";
import layoutSource from "worker:./layoutWorker";
import { element, icon, pageTarget, refocus, textNodes } from "../session/page/dom";
import { count, oneLine, plainText, plural } from "../session/visible";
import type { Direction, Layout, LayoutRequest } from "./layout";
import type { FromGraph, GraphState, ToGraph } from "./messages";
import { buildGraph, type Graph, type GraphTask } from "./model";
import { type BoxState, drawBox, LOOKS } from "./page/boxes";
import { Camera } from "./page/camera";
import { linePath, type Place, svgPath } from "./page/lines";
import { TaskTable } from "./page/table";

declare function acquireVsCodeApi(): {
  postMessage(message: FromGraph): void;
  getState(): Partial<GraphState> | undefined;
  setState(state: Partial<GraphState>): void;
};

/** Of a box, in ems. */
const BOX: [number, number] = [17.5, 5.4];
/** Below it the words cannot be read: boxes are shown as spots of colour. */
const FAR = 0.42;
/** A graph that does not fit at this scale is opened at `NEAR`, where something is being done. */
const LEAST_AT_START = 0.5;
const NEAR = 0.75;
const STEP = 1.25;
/** Between two announcements, so that a screen reader is not talked over, in milliseconds. */
const ANNOUNCE_EVERY = 2500;
/** What the legend always shows. */
const USUAL: BoxState[] = ["inProgress", "ready", "blocked", "lapsed", "completed"];

const vscode = acquireVsCodeApi();
const saved: Partial<GraphState> = vscode.getState() ?? pageTarget<GraphState>();
vscode.setState(saved);

interface Box extends Place {
  element: HTMLButtonElement;
  reads: string;
}

class Page {
  private readonly view = need("view");
  private readonly plane = need("graph");
  private readonly lines = need("lines");
  private readonly live = need("live");
  private readonly camera: Camera;
  private readonly table: TaskTable;
  private readonly worker = startWorker();
  private readonly width: number;
  private readonly height: number;

  private listId = saved.listId ?? "";
  private title = saved.title ?? "";
  private tasks: GraphTask[] | undefined;
  private graph: Graph = { nodes: new Map(), edges: [], cycles: [] };
  private withCompleted = saved.withCompleted ?? true;
  private asList = saved.asList ?? false;
  /** Chosen with the first layout, and kept: what was looked at must not turn by itself. */
  private direction: Direction | undefined = saved.direction;
  private active = saved.focus;
  private restore: Partial<GraphState> | undefined = saved;

  private readonly boxes = new Map<string, Box>();
  private readonly paths = new Map<string, SVGPathElement>();
  /** What was asked for last, and what of it is drawn; `busy`: a layout is under way. */
  private sequence = 0;
  private structure = "";
  private drawn = "";
  private busy = false;
  private waiting: LayoutRequest | undefined;
  /** From which task an arrow key led to this one: the opposite key leads back. */
  private readonly cameFrom = new Map<string, string>();
  private unsaved = false;
  private saveTimer: ReturnType<typeof setTimeout> | undefined;
  private announceTimer: ReturnType<typeof setTimeout> | undefined;
  private announced = 0;
  private readonly news: string[] = [];

  constructor() {
    const em = Number.parseFloat(getComputedStyle(document.body).fontSize) || 13;
    this.width = Math.round(BOX[0] * em);
    this.height = Math.round(BOX[1] * em);
    this.camera = new Camera(this.view, need("canvas"), this.plane, () => this.moved());
    this.table = new TaskTable(need("list"));
    this.worker.addEventListener("message", (event: MessageEvent<Layout>) => this.laidOut(event.data));
    this.worker.addEventListener("error", (event) => {
      this.busy = false;
      this.showNotice(`The graph cannot be laid out (${event.message}). The tasks are shown as a list.`);
      this.show(true);
    });
    window.addEventListener("message", (event: MessageEvent<ToGraph>) => this.receive(event.data));
    document.addEventListener("click", (event) => this.clicked(event));
    document.addEventListener("keydown", (event) => this.key(event));
    this.plane.addEventListener("focusin", (event) => this.focused(event));
    this.plane.addEventListener("focusout", () => this.light(undefined));
    this.plane.addEventListener("pointerover", (event) =>
      this.light((event.target as Element).closest<HTMLElement>(".box")?.dataset["id"]),
    );
    this.plane.addEventListener("pointerleave", () => this.light(undefined));
    vscode.postMessage({ type: "ready" });
  }

  private receive(message: ToGraph): void {
    switch (message.type) {
      case "tasks":
        document.body.classList.remove("loading", "failed");
        this.listId = message.listId;
        this.title = message.title;
        this.showNotice(message.notice);
        this.tellChanges(message.tasks);
        this.tasks = message.tasks;
        this.rebuild();
        return;
      case "notice":
        return this.showNotice(message.text);
      case "failed":
        document.body.classList.remove("loading");
        document.body.classList.add("failed");
        need("failure").replaceChildren(
          element("h2", {}, icon("warning"), "The tasks cannot be shown"),
          wordsOf(message.text),
          element("button", { type: "button", class: "button", "data-action": "retry" }, "Try again"),
        );
    }
  }

  private rebuild(): void {
    this.graph = buildGraph(this.tasks ?? [], this.withCompleted);
    const nodes = [...this.graph.nodes.keys()];
    const structure = JSON.stringify([nodes, this.graph.edges.map(({ from, to }) => [from, to])]);
    this.show(this.asList);
    if (structure === this.drawn) this.drawBoxes(this.graph);
    if (structure !== this.structure) {
      this.structure = structure;
      this.askLayout();
    }
    this.table.show(this.graph);
    this.showHead();
    this.save();
  }

  private askLayout(): void {
    const nodes = [...this.graph.nodes.keys()];
    const indexOf = new Map(nodes.map((id, index) => [id, index]));
    this.sequence += 1;
    this.layOut({
      sequence: this.sequence,
      count: nodes.length,
      edges: this.graph.edges.map(({ from, to }) => [indexOf.get(from) ?? 0, indexOf.get(to) ?? 0]),
      width: this.width,
      height: this.height,
      view: { width: this.view.clientWidth || window.innerWidth, height: this.view.clientHeight || window.innerHeight },
      direction: this.direction,
    });
  }

  /** One layout at a time; of those that were asked for meanwhile the last. */
  private layOut(request: LayoutRequest): void {
    this.waiting = request;
    if (this.busy) return;
    this.busy = true;
    this.waiting = undefined;
    this.plane.setAttribute("aria-busy", "true");
    document.body.classList.toggle("laying-out", this.boxes.size === 0 && request.count > 0);
    this.worker.postMessage(request);
  }

  private laidOut(layout: Layout): void {
    this.busy = false;
    if (this.waiting) return this.layOut(this.waiting);
    if (layout.sequence !== this.sequence) return;
    if (layout.x.length > 0) this.direction = layout.direction;
    document.body.classList.remove("laying-out");
    this.plane.setAttribute("aria-busy", "false");
    const first = this.boxes.size === 0;
    const anchor = first ? undefined : this.anchor();
    this.place(layout);
    this.camera.resize(layout.width, layout.height);
    if (anchor) {
      const box = this.boxes.get(anchor.id);
      if (box) this.camera.hold(box.x, box.y, anchor.at);
    } else if (first && this.boxes.size > 0) this.startView();
    this.drawn = this.structure;
    this.moved();
  }

  /** A box that is in view now and will be: the one with the focus, else the one nearest to the middle. */
  private anchor(): { id: string; at: [number, number] } | undefined {
    const [x, y] = this.camera.centre;
    let nearest: { id: string; far: number } | undefined;
    for (const [id, box] of this.boxes) {
      if (!this.graph.nodes.has(id)) continue;
      const far =
        document.activeElement === box.element && this.inView(box) ? -1 : Math.hypot(box.x + box.width / 2 - x, box.y + box.height / 2 - y);
      if (nearest === undefined || far < nearest.far) nearest = { id, far };
    }
    const box = nearest && this.boxes.get(nearest.id);
    return nearest && box ? { id: nearest.id, at: this.camera.onView(box.x, box.y) } : undefined;
  }

  private inView(box: Place): boolean {
    const [left, top] = this.camera.onView(box.x, box.y);
    const [right, bottom] = this.camera.onView(box.x + box.width, box.y + box.height);
    return right > 0 && bottom > 0 && left < this.view.clientWidth && top < this.view.clientHeight;
  }

  private place(layout: Layout): void {
    const { graph } = this;
    this.drawBoxes(graph);
    for (const [index, id] of [...graph.nodes.keys()].entries()) {
      const box = this.boxes.get(id);
      if (!box) continue;
      box.x = layout.x[index] ?? 0;
      box.y = layout.y[index] ?? 0;
      box.element.style.transform = `translate(${box.x}px, ${box.y}px)`;
    }
    this.lines.setAttribute("viewBox", `0 0 ${Math.max(1, layout.width)} ${Math.max(1, layout.height)}`);
    this.lines.style.width = `${layout.width}px`;
    this.lines.style.height = `${layout.height}px`;
    for (const path of this.paths.values()) path.remove();
    this.paths.clear();
    for (const [index, edge] of graph.edges.entries()) {
      const [from, to] = [this.boxes.get(edge.from), this.boxes.get(edge.to)];
      if (!from || !to) continue;
      const path = svgPath();
      path.setAttribute("d", linePath(layout.lines[index] ?? [], from, to, layout.direction));
      this.lines.append(path);
      this.paths.set(pathKey(edge.from, edge.to), path);
    }
    this.drawLines(graph);
  }

  /** Boxes that read as before stay as they are; one that changed stays the same element, with the focus. */
  private drawBoxes(graph: Graph): void {
    const cyclic = new Set(graph.edges.filter((edge) => edge.cyclic).flatMap(({ from, to }) => [from, to]));
    const hadFocus = document.activeElement?.closest<HTMLElement>(".box")?.dataset["id"];
    for (const [id, box] of this.boxes) {
      if (graph.nodes.has(id)) continue;
      box.element.remove();
      this.boxes.delete(id);
    }
    for (const node of graph.nodes.values()) {
      const reads = JSON.stringify([node, cyclic.has(node.id)]);
      const shown = this.boxes.get(node.id);
      if (shown?.reads === reads) continue;
      const made = drawBox(node, cyclic.has(node.id));
      if (shown) {
        for (const { name, value } of [...made.attributes]) if (name !== "tabindex") shown.element.setAttribute(name, value);
        if (!made.hasAttribute("aria-disabled")) shown.element.removeAttribute("aria-disabled");
        shown.element.replaceChildren(...made.childNodes);
        shown.reads = reads;
      } else {
        made.style.width = `${this.width}px`;
        made.style.height = `${this.height}px`;
        this.plane.append(made);
        this.boxes.set(node.id, { element: made, reads, x: 0, y: 0, width: this.width, height: this.height });
      }
    }
    // Reading order is that of the numbers.
    let previous: Element = this.lines;
    for (const id of graph.nodes.keys()) {
      const box = this.boxes.get(id)?.element;
      if (!box) continue;
      if (previous.nextElementSibling !== box) previous.after(box);
      previous = box;
    }
    if (this.active === undefined || !this.boxes.has(this.active)) this.active = this.startNode();
    for (const [id, box] of this.boxes) box.element.tabIndex = id === this.active ? 0 : -1;
    if (hadFocus !== undefined && !this.boxes.has(hadFocus)) refocus(() => this.boxes.get(this.active ?? "")?.element);
    this.drawLines(graph);
  }

  private drawLines(graph: Graph): void {
    for (const edge of graph.edges) {
      const path = this.paths.get(pathKey(edge.from, edge.to));
      path?.setAttribute("class", `line${edge.cyclic ? " cyclic" : edge.settled ? " settled" : ""}`);
    }
    this.light(this.lit);
  }

  private lit: string | undefined;

  /** Shows which lines are of the task that is pointed at, or has the focus. */
  private light(id: string | undefined): void {
    const shown = id ?? document.activeElement?.closest<HTMLElement>(".box")?.dataset["id"];
    this.lit = id;
    for (const path of this.lines.querySelectorAll(".lit")) path.classList.remove("lit");
    const node = shown === undefined ? undefined : this.graph.nodes.get(shown);
    for (const before of node?.before ?? []) this.raise(pathKey(before, node?.id ?? ""));
    for (const after of node?.after ?? []) this.raise(pathKey(node?.id ?? "", after));
  }

  private raise(key: string): void {
    const path = this.paths.get(key);
    path?.classList.add("lit");
    path?.parentNode?.append(path);
  }

  /** What is being done, else what can be, else the first. */
  private startNode(): string | undefined {
    const nodes = [...this.graph.nodes.values()];
    for (const state of ["inProgress", "lapsed", "claimed", "ready"] as const) {
      const found = nodes.find((node) => node.task?.state === state);
      if (found) return found.id;
    }
    return nodes[0]?.id;
  }

  private startView(): void {
    const kept = this.restore;
    this.restore = undefined;
    if (kept?.scale !== undefined && kept.centre !== undefined) {
      this.camera.zoomTo(kept.scale);
      return this.camera.centreOn(...kept.centre);
    }
    if (this.camera.fitting >= LEAST_AT_START) return this.camera.fit();
    const box = this.boxes.get(this.active ?? "");
    this.camera.zoomTo(NEAR);
    if (box) this.camera.centreOn(box.x + box.width / 2, box.y + box.height / 2);
  }

  private moved(): void {
    need("zoom").textContent = `${Math.round(this.camera.scale * 100)}%`;
    this.plane.classList.toggle("far", this.camera.scale < FAR);
    this.save();
  }

  private showHead(): void {
    const title = need("title");
    const name = this.title || "Tasks";
    title.replaceChildren(textNodes(oneLine(name, 200)));
    title.title = plainText(name).slice(0, 500);
    const tasks = this.tasks ?? [];
    const hidden = this.withCompleted ? 0 : tasks.filter((task) => task.state === "completed").length;
    const facts = [
      plural(tasks.length, "task"),
      plural(this.graph.edges.length, "dependency", "dependencies"),
      ...(hidden > 0 ? [`${count(hidden)} completed not shown`] : []),
    ];
    need("facts").replaceChildren(facts.join(" · "));
    need("completed").setAttribute("aria-pressed", String(this.withCompleted));
    this.showLegend(tasks);
    const circles = need("circles");
    const { cycles } = this.graph;
    circles.hidden = cycles.length === 0;
    const told = cycles.slice(0, 3).map((circle) => [...circle, circle[0] ?? ""].map((id) => `#${oneLine(id, 40)}`).join(" → "));
    if (cycles.length > 3) told.push(`${cycles.length - 3} more`);
    const text = `Tasks that wait for each other, so that none of them can start: ${told.join("; ")}`;
    if (circles.dataset["text"] !== text) {
      circles.dataset["text"] = text;
      circles.replaceChildren(icon("warning"), element("span", {}, text));
    }
  }

  private showLegend(tasks: readonly GraphTask[]): void {
    const counts = new Map<BoxState, number>();
    for (const node of this.graph.nodes.values()) if (!node.task) counts.set("missing", (counts.get("missing") ?? 0) + 1);
    for (const { state } of tasks) counts.set(state, (counts.get(state) ?? 0) + 1);
    const shown = (Object.keys(LOOKS) as BoxState[]).filter((state) => USUAL.includes(state) || counts.has(state));
    const item = (...children: (Node | string)[]) => element("li", {}, ...children);
    const items = shown.map((state) =>
      item(
        element("span", { class: `legend-mark state-${state}` }, icon(LOOKS[state].icon)),
        `${count(counts.get(state) ?? 0)} ${LOOKS[state].name}`,
      ),
    );
    need("legend").replaceChildren(...items);
  }

  private show(asList: boolean): void {
    this.asList = asList;
    const empty = this.graph.nodes.size === 0;
    need("nothing").hidden = !empty;
    const all = this.tasks?.length ?? 0;
    need("nothing-text").textContent =
      all > 0
        ? `${all === 1 ? "The only task is" : `All ${count(all)} tasks are`} done.`
        : "There are no tasks in this list yet. They show here as soon as somebody adds one.";
    need("nothing-show").hidden = all === 0;
    this.view.hidden = empty || asList;
    need("list").hidden = empty || !asList;
    need("zooming").hidden = empty || asList;
    need("turn").hidden = empty || asList;
    need("keys").hidden = empty || asList;
    need("as-list").setAttribute("aria-pressed", String(asList));
  }

  private toggleList(): void {
    this.show(!this.asList);
    if (this.asList) this.table.focus(this.active);
    else this.focus(this.active);
    this.live.textContent = this.asList ? "Shown as a list" : "Shown as a graph";
    this.save(true);
  }

  private toggleCompleted(): void {
    this.withCompleted = !this.withCompleted;
    this.rebuild();
    this.live.textContent = this.withCompleted ? "Completed tasks are shown" : "Completed tasks are not shown";
    this.save(true);
  }

  private turn(): void {
    this.direction = this.direction === "down" ? "right" : "down";
    this.cameFrom.clear();
    this.askLayout();
    this.live.textContent = this.direction === "down" ? "The graph goes down" : "The graph goes to the right";
    this.save(true);
  }

  private clicked(event: MouseEvent): void {
    const target = event.target as Element;
    const id = target.closest<HTMLElement>("[data-id]")?.dataset["id"];
    if (id !== undefined) {
      if (this.graph.nodes.get(id)?.task) vscode.postMessage({ type: "open", id });
      return;
    }
    if (target.closest("[data-action=retry]")) return vscode.postMessage({ type: "retry" });
    if (target.closest("[data-action=dismiss]")) return this.showNotice("");
    switch (target.closest("button")?.id) {
      case "completed":
      case "nothing-show":
        return this.toggleCompleted();
      case "turn":
        return this.turn();
      case "as-list":
        return this.toggleList();
      case "zoom-in":
        return this.camera.zoomTo(this.camera.scale * STEP);
      case "zoom-out":
        return this.camera.zoomTo(this.camera.scale / STEP);
      case "zoom":
        return this.camera.zoomTo(1);
      case "fit":
        return this.camera.fit();
    }
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target as HTMLElement;
    const onBox = target.closest(".box") !== null;
    if (this.command(event.key, onBox || target === document.body)) event.preventDefault();
  }

  /** Whether the key means something. */
  private command(key: string, inGraph: boolean): boolean {
    switch (key) {
      case "l":
        this.toggleList();
        return true;
      case "d":
        this.toggleCompleted();
        return true;
    }
    if (this.asList || this.graph.nodes.size === 0) return false;
    switch (key) {
      case "t":
        this.turn();
        return true;
      case "+":
      case "=":
        this.camera.zoomTo(this.camera.scale * STEP);
        return true;
      case "-":
        this.camera.zoomTo(this.camera.scale / STEP);
        return true;
      case "0":
        this.camera.fit();
        return true;
      case "1":
        this.camera.zoomTo(1);
        return true;
    }
    if (!inGraph) return false;
    switch (key) {
      case "ArrowLeft":
      case "ArrowRight":
      case "ArrowUp":
      case "ArrowDown":
        this.walk(key);
        return true;
      case "Home":
        this.focus([...this.graph.nodes.keys()][0]);
        return true;
      case "End":
        this.focus([...this.graph.nodes.keys()].at(-1));
        return true;
      default:
        return false;
    }
  }

  private walk(key: "ArrowLeft" | "ArrowRight" | "ArrowUp" | "ArrowDown"): void {
    const id = document.activeElement?.closest<HTMLElement>(".box")?.dataset["id"];
    const node = id === undefined ? undefined : this.graph.nodes.get(id);
    if (id === undefined || !node) return this.focus(this.active);
    const alone = node.before.length + node.after.length === 0;
    const down = this.direction === "down";
    const [back, onwards] = down ? (["ArrowUp", "ArrowDown"] as const) : (["ArrowLeft", "ArrowRight"] as const);
    if ((key !== back && key !== onwards) || alone) return this.focus(this.besides(id, key));
    const onward = key === onwards;
    const ways = onward ? node.after : node.before;
    const whence = this.cameFrom.get(`${key} ${id}`);
    const next = whence !== undefined && ways.includes(whence) ? whence : this.nearestOf(ways, id);
    if (next === undefined) {
      this.live.textContent = onward ? "Nothing waits for this task" : "This task waits for nothing";
      return;
    }
    this.cameFrom.set(`${onward ? back : onwards} ${next}`, id);
    this.focus(next);
  }

  private nearestOf(candidates: readonly string[], id: string): string | undefined {
    const here = this.boxes.get(id);
    const across = this.direction === "down" ? "x" : "y";
    const far = (other: string) => Math.abs((this.boxes.get(other)?.[across] ?? 0) - (here?.[across] ?? 0));
    return candidates.filter((other) => this.boxes.has(other)).sort((a, b) => far(a) - far(b))[0];
  }

  /** The next box in a direction: in the same column or row, else the one least out of the way. */
  private besides(id: string, key: string): string | undefined {
    const here = this.boxes.get(id);
    if (!here) return undefined;
    const along = key === "ArrowUp" || key === "ArrowDown" ? "y" : "x";
    const across = along === "y" ? "x" : "y";
    const sign = key === "ArrowDown" || key === "ArrowRight" ? 1 : -1;
    let best: { id: string; far: number } | undefined;
    for (const [other, box] of this.boxes) {
      const ahead = (box[along] - here[along]) * sign;
      if (other === id || ahead < 1) continue;
      const aside = Math.abs(box[across] - here[across]);
      if (along === "x" && aside > here.height / 2) continue; // stays in its row
      const far = ahead + aside * (aside < here.width / 2 ? 0.1 : 4);
      if (best === undefined || far < best.far) best = { id: other, far };
    }
    return best?.id;
  }

  private focus(id: string | undefined): void {
    const box = id === undefined ? undefined : this.boxes.get(id);
    if (!box) return;
    box.element.focus({ preventScroll: true });
    this.camera.reveal(box.x, box.y, box.width, box.height);
  }

  private focused(event: FocusEvent): void {
    const element = (event.target as Element).closest<HTMLElement>(".box");
    const id = element?.dataset["id"];
    const box = id === undefined ? undefined : this.boxes.get(id);
    if (id === undefined || !box) return;
    const before = this.boxes.get(this.active ?? "");
    if (before) before.element.tabIndex = -1;
    this.active = id;
    box.element.tabIndex = 0;
    this.light(undefined);
    // A click must not move what it is about to hit.
    if (box.element.matches(":focus-visible")) this.camera.reveal(box.x, box.y, box.width, box.height);
    this.save(true);
  }

  private showNotice(text: string): void {
    const notice = need("notice");
    notice.hidden = text === "";
    if (notice.dataset["text"] === text) return;
    notice.dataset["text"] = text;
    const dismiss = { type: "button", class: "icon-button", "data-action": "dismiss", title: "Dismiss", "aria-label": "Dismiss" };
    const words = element("span");
    words.append(textNodes(text));
    notice.replaceChildren(...(text === "" ? [] : [icon("warning"), words, element("button", dismiss, icon("close"))]));
  }

  /** Says what changed, a few at a time: first what happened to the task that has the focus, if any. */
  private tellChanges(tasks: readonly GraphTask[]): void {
    if (this.tasks === undefined) return;
    const before = new Map(this.tasks.map((task) => [task.id, task.state]));
    for (const { id, state } of tasks) {
      const was = before.get(id);
      if (was === state) continue;
      this.news.push(was === undefined ? `Task ${oneLine(id, 40)} added` : `Task ${oneLine(id, 40)} ${LOOKS[state].name}`);
    }
    if (this.news.length === 0 || this.announceTimer !== undefined) return;
    this.announceTimer = setTimeout(
      () => {
        this.announceTimer = undefined;
        this.announced = Date.now();
        this.live.textContent = this.news.length > 3 ? `${plural(this.news.length, "change")} of tasks` : this.news.join(", ");
        this.news.length = 0;
      },
      Math.max(250, this.announced + ANNOUNCE_EVERY - Date.now()),
    );
  }

  /** `chosen`: by somebody, who may leave the tab the next moment, and the page is gone then. Scrolling and zooming may lag behind. */
  private save(chosen = false): void {
    if (this.listId === "") return;
    this.unsaved = true;
    if (chosen || this.saveTimer === undefined) this.write();
    this.saveTimer ??= setTimeout(() => {
      this.saveTimer = undefined;
      if (this.unsaved) this.write();
    }, 200);
  }

  private write(): void {
    this.unsaved = false;
    const state: GraphState = {
      listId: this.listId,
      title: this.title.slice(0, 200),
      asList: this.asList,
      withCompleted: this.withCompleted,
    };
    if (this.active !== undefined) state.focus = this.active;
    if (this.direction !== undefined) state.direction = this.direction;
    if (this.drawn !== "" && this.boxes.size > 0 && this.view.clientWidth > 0) {
      state.scale = this.camera.scale;
      state.centre = this.camera.centre;
    } else if (this.restore?.scale !== undefined && this.restore.centre !== undefined) {
      state.scale = this.restore.scale;
      state.centre = this.restore.centre;
    }
    vscode.setState(state);
  }
}

function startWorker(): Worker {
  const address = URL.createObjectURL(new Blob([layoutSource], { type: "text/javascript" }));
  return new Worker(address);
}

function pathKey(from: string, to: string): string {
  return JSON.stringify([from, to]);
}

function wordsOf(text: string): HTMLElement {
  const words = element("p");
  words.append(textNodes(text));
  return words;
}

function need(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found;
}

new Page();
