import { expect, test } from "vitest";
import { addressGroup, connectionCapacity, localConnectionCapacity } from "./open-connections.ts";

test.each([
  ["192.0.2.7", "192.0.2.7"],
  ["::ffff:192.0.2.7", "192.0.2.7"],
  ["::FFFF:192.0.2.7", "192.0.2.7"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:0DB8:0001:0002::1", "2001:db8:1:2::/64"],
  ["2001:db8::1", "2001:db8:0:0::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
  ["::1", "0:0:0:0::/64"],
  ["::", "0:0:0:0::/64"],
  ["64:ff9b::192.0.2.7", "64:ff9b:0:0::/64"],
  ["unknown", "unknown"],
  ["", "unknown"],
  ["x".repeat(10_000), "unknown"],
  [undefined, "unknown"],
])("%s is counted as %s", (address, group) => {
  expect(addressGroup(address)).toBe(group);
});

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
