import { randomBytes } from "node:crypto";
import { buildPaymentRequest } from "../../../src/methods/exact-eip3009/eip3009-method.ts";
import type { Address, Hex } from "../../../src/protocol/hex.ts";
import { settlementId } from "../../../src/protocol/signed-payment.ts";
import { maxSignatureBytes } from "../../../src/protocol/wire-values.ts";
import type { Composition } from "../composition.ts";
import { movingWays, type WayPayment } from "../ways.ts";

const wallet: Address = `0x${"1a".repeat(20)}`;

/** Answers every call with the magic value of ERC-1271, like a wallet that accepts any bytes as a signature. */
const acceptsAnything = `0x7f1626ba7e${"00".repeat(28)}60005260206000f3`;

/**
 * Payments by a contract wallet, each with a signature of random bytes that has the maximum length.
 *
 * @param nextValue returns a distinct amount for each payment, which identifies its transfer
 */
export async function largePayments(
  { chain }: Composition,
  count: number,
  nextValue: () => bigint,
): Promise<WayPayment[]> {
  if (count === 0) return [];
  const { network, asset, facilitatorContract, node } = chain;
  await node.request("anvil_setCode", wallet, acceptsAnything);
  // More than they need, because payments in flight are reserved until their receipts are read.
  await chain.fund(wallet, 20_000n * BigInt(count));
  const validBefore = (await chain.now()) + 600n;
  const hex = (bytes: number): Hex => `0x${randomBytes(bytes).toString("hex")}`;
  return Array.from({ length: count }, (): WayPayment => {
    const due = nextValue();
    const nonce = hex(32);
    const body = buildPaymentRequest({
      ...{ x402Version: 1, network, asset, payTo: facilitatorContract, amount: due },
      resource: "https://merchant.example/resource",
      authorization: {
        ...{ from: wallet, to: facilitatorContract, value: due },
        ...{ validAfter: 0n, validBefore, nonce },
      },
      signature: hex(maxSignatureBytes),
    });
    const id = settlementId(network.chainId, asset.address, wallet, nonce);
    return { way: movingWays[0], body, verifyBody: body, payer: wallet, due, id };
  });
}
