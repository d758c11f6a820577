/** The lines between boxes, as paths. */

import type { Direction } from "../layout";

const SVG = "http://www.w3.org/2000/svg";

export interface Place {
  x: number;
  y: number;
  width: number;
  height: number;
}

/**
 * A line by the layout's points, with its head. It leaves and arrives in the middle of a side, and bends only between the columns (rows,
 * when the graph goes down): past the boxes of a column it goes straight, in the lane that the layout left for it.
 */
export function linePath(points: readonly number[], from: Place, to: Place, direction: Direction): string {
  // Along the way the graph goes, and across it.
  const [along, across] = direction === "right" ? (["x", "y"] as const) : (["y", "x"] as const);
  const [length, breadth] = direction === "right" ? (["width", "height"] as const) : (["height", "width"] as const);
  const at: [number, number][] = [];
  for (let index = 0; index + 1 < points.length; index += 2) {
    const [x, y] = [points[index] ?? 0, points[index + 1] ?? 0];
    at.push(direction === "right" ? [x, y] : [y, x]);
  }
  const onward = to[along] >= from[along] + from[length];
  const backward = from[along] >= to[along] + to[length];
  const written = (u: number, v: number) => (direction === "right" ? `${round(u)} ${round(v)}` : `${round(v)} ${round(u)}`);
  if (!onward && !backward) return loopPath(from);
  const sign = onward ? 1 : -1;
  const middle = (place: Place) => place[across] + place[breadth] / 2;
  const start: [number, number] = [onward ? from[along] + from[length] : from[along], middle(from)];
  const end: [number, number] = [onward ? to[along] : to[along] + to[length], middle(to)];
  let [u, v] = start;
  let path = `M${written(u, v)}`;
  const bend = (nextU: number, nextV: number) => {
    const half = (u + nextU) / 2;
    path += `C${written(half, v)} ${written(half, nextV)} ${written(nextU, nextV)}`;
    [u, v] = [nextU, nextV];
  };
  // The layout's points lie in the columns and, every second one, in between.
  for (let index = 2; index < at.length - 1; index += 2) {
    const [column, lane] = at[index] ?? [0, 0];
    bend(column - (sign * from[length]) / 2, lane);
    u = column + (sign * from[length]) / 2;
    path += `L${written(u, v)}`;
  }
  bend(...end);
  return path + head(u, v, sign, 0, written);
}

/** A task that waits for itself: a loop at its right side, narrower than the gap to its neighbour. */
function loopPath({ x, y, width, height }: Place): string {
  const [u, top, bottom, far] = [x + width, y + height * 0.3, y + height * 0.7, x + width + 20];
  const written = (a: number, b: number) => `${round(a)} ${round(b)}`;
  return `M${written(u, top)}C${written(far, top)} ${written(far, bottom)} ${written(u, bottom)}${head(u, bottom, -1, 0, written)}`;
}

/** Two strokes back from the end; `du`, `dv`: where the line goes there, of length 1. */
function head(u: number, v: number, du: number, dv: number, written: (u: number, v: number) => string): string {
  const wing = (side: number) => written(u - 7 * du - side * 4 * dv, v - 7 * dv + side * 4 * du);
  return `M${wing(1)}L${written(u, v)}L${wing(-1)}`;
}

export function svgPath(): SVGPathElement {
  return document.createElementNS(SVG, "path");
}

function round(value: number): string {
  return String(Math.round(value * 10) / 10);
}
