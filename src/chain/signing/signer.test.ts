import fc from "fast-check";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { toHex } from "../../protocol/hex.ts";
import { harnessAccounts } from "../../published/accounts.ts";
import { mostCost, readTransaction } from "./signer.ts";

const account = privateKeyToAccount(harnessAccounts.operator.privateKey);

test("any transaction is read as it was signed", async () => {
  const number = fc.bigInt({ min: 0n, max: 2n ** 64n });
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(fc.uint8Array({ maxLength: 100 }), fc.uint8Array({ minLength: 60_000, maxLength: 70_000 })),
      fc.record({ chainId: fc.integer({ min: 1 }), nonce: fc.nat(), gas: number, maxFeePerGas: number }),
      async (bytes, fields) => {
        const data = toHex(bytes);
        const raw = await account.signTransaction({
          ...{ type: "eip1559", value: 0n, to: account.address, maxPriorityFeePerGas: 0n },
          ...{ ...fields, data },
        });
        expect(readTransaction(raw)).toEqual({ txNonce: fields.nonce, gas: fields.gas, data });
        expect(mostCost({ raw, ...fields })).toBe(fields.gas * fields.maxFeePerGas);
      },
    ),
    { numRuns: 30 },
  );
});
