import { expect, test } from "vitest";
import { recoverSigner } from "../../../src/chain/signing/recover-signer.ts";
import { domainSeparator } from "../../../src/methods/eip712.ts";
import { authorizationDigest } from "../../../src/methods/exact-eip3009/authorization.ts";
import { networks } from "../../../src/protocol/networks.ts";

/*
 * The signature that the x402 specification prints as its example of the exact scheme (v1 and v2 alike), on
 * base-sepolia's USDC.
 */
const authorization = {
  from: "0x857b06519E91e3A54538791bDbb0E22373e36b66",
  to: "0x209693Bc6afc0C5328bA36FaF03C514EF312287C",
  value: 10_000n,
  validAfter: 1_740_672_089n,
  validBefore: 1_740_672_154n,
  nonce: "0xf3746613c2d920b5fdabc0856f2aeb2d4f88ee6037b8cc5d04a71a4462f13480",
} as const;
const signature =
  "0x2d6a7588d6acca505cbf0d9a4a227e0c52c6c34008c8e8986a1283259764173608a2ce6496642e377d6da8dbbf5836e9bd15092f9ecab05ded3d6293af148b571c";

test("the signature printed in the specification recovers to its payer", () => {
  const { chainId, usdc } = networks["base-sepolia"];
  const digest = authorizationDigest(domainSeparator(usdc, chainId), authorization);
  expect(recoverSigner(digest, signature)).toBe(authorization.from.toLowerCase());
});

test("on another network the same signature recovers to another account", () => {
  const { chainId, usdc } = networks.base;
  const digest = authorizationDigest(domainSeparator(usdc, chainId), authorization);
  expect(recoverSigner(digest, signature)).not.toBe(authorization.from.toLowerCase());
});
