import { expect, test } from "vitest";
import { connectionCapacity, localConnectionCapacity } from "./connection-capacity.ts";

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

test.each([
  [undefined, 10_000],
  [1_024, 768],
])(
  "with %s file descriptors a server of this machine takes %i connections, all from one address",
  (files, max) => {
    expect(localConnectionCapacity(files)).toEqual({ max, maxPerAddress: max });
  },
);
