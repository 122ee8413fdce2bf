import { expect, test } from "vitest";
import { requireNode } from "./self-command.ts";

test.each(["20.20.2", "22.17.1", "18.0.0"])("Node %s is refused, by name", (version) => {
  expect(() => requireNode(version)).toThrow(
    `x402-facilitator-kit needs Node 22.18 or newer, and this is ${version}`,
  );
});

test.each(["22.18.0", "24.21.0", "26.0.0"])("Node %s will do", (version) => {
  expect(() => requireNode(version)).not.toThrow();
});
