import { expect, test } from "vitest";
import { withLocal, withoutLocal } from "./local-advice.ts";

test("an advice is the same once the command for a local chain is taken out again", () => {
  expect(withoutLocal(withLocal("Fund the `payer`.", "x402-kit fund"))).toBe("Fund the `payer`.");
  expect(withoutLocal(withLocal("Fund the `payer`.", undefined))).toBe("Fund the `payer`.");
});
