import assert from "node:assert/strict";
import { test } from "node:test";
import { Sums } from "../src/session/page/sums";

test("sums and places are those of the plain numbers, whatever changes", () => {
  let seed = 11;
  const random = (below: number) => {
    seed = (seed * 16_807) % 2_147_483_647;
    return seed % below;
  };
  for (const length of [0, 1, 2, 3, 7, 8, 9, 100, 1000]) {
    const values = Array.from({ length }, () => random(200));
    const sums = new Sums(values);
    for (let change = 0; change < 50; change += 1) {
      if (length > 0) {
        const [at, value] = [random(length), random(300)];
        values[at] = value;
        sums.set(at, value);
        assert.equal(sums.value(at), value);
      }
      const count = random(length + 1);
      assert.equal(
        sums.before(count),
        values.slice(0, count).reduce((sum, value) => sum + value, 0),
      );
      const sought = random(200 * length + 10) - 5;
      let [expected, sum] = [0, 0];
      while (expected < length && sum + (values[expected] ?? 0) <= sought) {
        sum += values[expected] ?? 0;
        expected += 1;
      }
      assert.equal(sums.find(sought), expected, `${sought} in ${values}`);
    }
  }
});
