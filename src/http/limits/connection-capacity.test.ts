import { expect, test } from "vitest";
import { connectionCapacity } from "./connection-capacity.ts";

test.each([
  [undefined, 10_000, 7_500],
  [1_048_576, 10_000, 7_500],
  [16_384, 10_000, 7_500],
  [1_024, 768, 576],
  [256, 128, 96],
  [64, 1, 1],
])("with %s file descriptors there are %i connections, %i from one address", (files, max, maxPerAddress) => {
  expect(connectionCapacity(files)).toEqual({ max, maxPerAddress });
});
