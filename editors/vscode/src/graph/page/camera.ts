/**
 * What of the graph is in view. It scrolls as any page does, so that touch pads, scroll bars, the focus and the find widget move it the
 * way they move everything else; zooming scales what is scrolled, about the pointer or the middle.
 */

export const SMALLEST = 0.05;
export const LARGEST = 2;
/** What can be scrolled past the graph's edges, in pixels of the screen. */
const MARGIN = 48;

export class Camera {
  scale = 1;
  private width = 0;
  private height = 0;
  private left = 0;
  private top = 0;
  /** What can be scrolled past the margins, so that what is looked at need not move when everything else does. */
  private spare = { left: 0, top: 0, right: 0, bottom: 0 };

  constructor(
    readonly view: HTMLElement,
    private readonly canvas: HTMLElement,
    private readonly graph: HTMLElement,
    private readonly changed: () => void,
  ) {
    view.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    view.addEventListener("pointerdown", (event) => this.grab(event));
    view.addEventListener("scroll", () => this.changed(), { passive: true });
    let shown: [number, number] = [0, 0];
    new ResizeObserver(() => {
      if (view.clientWidth === 0) return;
      // What was in the middle stays there.
      const [width, height] = shown;
      const at: [number, number] = [
        (view.scrollLeft + width / 2 - this.left) / this.scale,
        (view.scrollTop + height / 2 - this.top) / this.scale,
      ];
      shown = [view.clientWidth, view.clientHeight];
      this.apply();
      if (width > 0) this.centreOn(...at);
    }).observe(view);
  }

  /** The size of what is looked at, in its own pixels. */
  resize(width: number, height: number): void {
    this.width = width;
    this.height = height;
    this.tighten();
    this.graph.style.width = `${width}px`;
    this.graph.style.height = `${height}px`;
    this.apply();
  }

  /** The point in the middle of the view. */
  get centre(): [number, number] {
    const { view } = this;
    return [
      (view.scrollLeft + view.clientWidth / 2 - this.left) / this.scale,
      (view.scrollTop + view.clientHeight / 2 - this.top) / this.scale,
    ];
  }

  centreOn(x: number, y: number): void {
    const { view } = this;
    view.scrollTo(x * this.scale + this.left - view.clientWidth / 2, y * this.scale + this.top - view.clientHeight / 2);
    this.changed();
  }

  /** Where a point of the graph is on the view. */
  onView(x: number, y: number): [number, number] {
    return [x * this.scale + this.left - this.view.scrollLeft, y * this.scale + this.top - this.view.scrollTop];
  }

  /** As `put`, at the edge of the graph too: there is room made for it until the next zoom. */
  hold(x: number, y: number, [onViewX, onViewY]: [number, number]): void {
    const { view, canvas } = this;
    const [scrollLeft, scrollTop] = [x * this.scale + this.left - onViewX, y * this.scale + this.top - onViewY];
    this.spare = {
      left: Math.max(0, -scrollLeft),
      top: Math.max(0, -scrollTop),
      right: Math.max(0, scrollLeft - (canvas.offsetWidth - view.clientWidth)),
      bottom: Math.max(0, scrollTop - (canvas.offsetHeight - view.clientHeight)),
    };
    this.apply();
    this.put(x, y, [onViewX, onViewY]);
  }

  /** Scrolls so that a point of the graph is at that place of the view. */
  put(x: number, y: number, [onViewX, onViewY]: [number, number]): void {
    this.view.scrollTo(x * this.scale + this.left - onViewX, y * this.scale + this.top - onViewY);
  }

  /** `at`: what stays where it is, on the view; by default its middle. */
  zoomTo(scale: number, at: [number, number] = [this.view.clientWidth / 2, this.view.clientHeight / 2]): void {
    const [x, y] = [(this.view.scrollLeft + at[0] - this.left) / this.scale, (this.view.scrollTop + at[1] - this.top) / this.scale];
    this.scale = Math.min(LARGEST, Math.max(SMALLEST, scale));
    this.tighten();
    this.apply();
    this.put(x, y, at);
    this.changed();
  }

  /** The scale at which all of it is in view. */
  get fitting(): number {
    const { clientWidth, clientHeight } = this.view;
    const fits = Math.min((clientWidth - MARGIN) / Math.max(1, this.width), (clientHeight - MARGIN) / Math.max(1, this.height));
    return Math.min(1, Math.max(SMALLEST, fits));
  }

  fit(): void {
    this.scale = this.fitting;
    this.tighten();
    this.apply();
    this.centreOn(this.width / 2, this.height / 2);
  }

  /** Scrolls as little as brings a box into view, with some air around it. */
  reveal(x: number, y: number, width: number, height: number): void {
    const { view } = this;
    const [left, top] = this.onView(x, y);
    const [right, bottom] = this.onView(x + width, y + height);
    const air = 24;
    const by = (start: number, end: number, room: number) => {
      if (start < air) return start - air;
      return end > room - air ? Math.min(start - air, end - room + air) : 0;
    };
    view.scrollBy(by(left, right, view.clientWidth), by(top, bottom, view.clientHeight));
  }

  private tighten(): void {
    this.spare = { left: 0, top: 0, right: 0, bottom: 0 };
  }

  private apply(): void {
    const { view, canvas, graph, scale, spare } = this;
    const [width, height] = [this.width * scale, this.height * scale];
    this.left = Math.max(MARGIN, (view.clientWidth - width) / 2) + spare.left;
    this.top = Math.max(MARGIN, (view.clientHeight - height) / 2) + spare.top;
    canvas.style.width = `${Math.max(width + 2 * MARGIN, view.clientWidth) + spare.left + spare.right}px`;
    canvas.style.height = `${Math.max(height + 2 * MARGIN, view.clientHeight) + spare.top + spare.bottom}px`;
    graph.style.transform = `translate(${this.left}px, ${this.top}px) scale(${scale})`;
  }

  private wheel(event: WheelEvent): void {
    // A pinch on a touch pad comes as this, too.
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const frame = this.view.getBoundingClientRect();
    const turned = event.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? event.deltaY : event.deltaY * 30;
    this.zoomTo(this.scale * Math.exp(-Math.max(-200, Math.min(200, turned)) / 300), [
      event.clientX - frame.left,
      event.clientY - frame.top,
    ]);
  }

  private grab(event: PointerEvent): void {
    const { view } = this;
    const onBox = (event.target as Element).closest(".box") !== null;
    if (event.pointerType === "touch" || !(event.button === 1 || (event.button === 0 && !onBox))) return;
    const frame = view.getBoundingClientRect();
    // On a scroll bar.
    if (event.clientX - frame.left >= view.clientWidth || event.clientY - frame.top >= view.clientHeight) return;
    event.preventDefault();
    const start = { x: event.clientX + view.scrollLeft, y: event.clientY + view.scrollTop };
    view.setPointerCapture(event.pointerId);
    view.classList.add("grabbed");
    const drag = (moved: PointerEvent) => view.scrollTo(start.x - moved.clientX, start.y - moved.clientY);
    const drop = () => {
      view.classList.remove("grabbed");
      view.removeEventListener("pointermove", drag);
      view.removeEventListener("pointerup", drop);
      view.removeEventListener("pointercancel", drop);
    };
    view.addEventListener("pointermove", drag);
    view.addEventListener("pointerup", drop);
    view.addEventListener("pointercancel", drop);
  }
}
