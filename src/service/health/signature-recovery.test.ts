import { expect, test } from "vitest";
import { checkSignatureRecovery } from "./signature-recovery.ts";

test("an installation without libsecp256k1 is warned of, with the way out", () => {
  expect(checkSignatureRecovery(true)).toBeUndefined();
  expect(checkSignatureRecovery(false)).toEqual({
    name: "signatures",
    status: "warning",
    detail: expect.stringMatching(/^are recovered in JavaScript, .* has no binary for \w+ on \w+$/),
    advice: expect.stringContaining("C++ compiler"),
  });
});
