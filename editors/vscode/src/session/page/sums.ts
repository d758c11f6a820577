/** Numbers whose sums up to any place, and whose changes, cost the logarithm of how many there are: a Fenwick tree. */
export class Sums {
  private readonly values: Float64Array;
  private readonly tree: Float64Array;

  constructor(values: readonly number[]) {
    this.values = Float64Array.from(values);
    this.tree = new Float64Array(values.length + 1);
    for (let at = 1; at <= values.length; at += 1) {
      this.tree[at] = (this.tree[at] ?? 0) + (values[at - 1] ?? 0);
      const above = at + (at & -at);
      if (above <= values.length) this.tree[above] = (this.tree[above] ?? 0) + (this.tree[at] ?? 0);
    }
  }

  value(index: number): number {
    return this.values[index] ?? 0;
  }

  set(index: number, value: number): void {
    const by = value - this.value(index);
    this.values[index] = value;
    for (let at = index + 1; at < this.tree.length; at += at & -at) this.tree[at] = (this.tree[at] ?? 0) + by;
  }

  /** The sum of the first `count` of them. */
  before(count: number): number {
    let sum = 0;
    for (let at = Math.min(count, this.values.length); at > 0; at -= at & -at) sum += this.tree[at] ?? 0;
    return sum;
  }

  /** How many from the first on have a sum of at most `sum`: the index of the one in which it lies. */
  find(sum: number): number {
    let [at, rest] = [0, sum];
    for (let step = 2 ** Math.floor(Math.log2(Math.max(1, this.values.length))); step >= 1; step /= 2) {
      if (at + step <= this.values.length && (this.tree[at + step] ?? 0) <= rest) {
        at += step;
        rest -= this.tree[at] ?? 0;
      }
    }
    return at;
  }
}
