import { z } from "zod";
import { type TestPayerName, testPayers } from "../../src/payer/test-payers.ts";
import { address, bytes32 } from "../../src/protocol/primitives.ts";
import type { BuyerAccount } from "./buyer.ts";
import { signAs } from "./sign-as.ts";

const authorizationToSign = z.object({
  domain: z.object({
    name: z.string(),
    version: z.string(),
    chainId: z.number(),
    verifyingContract: address,
  }),
  primaryType: z.literal("TransferWithAuthorization"),
  message: z.object({
    from: address,
    to: address,
    value: z.bigint(),
    validAfter: z.bigint(),
    validBefore: z.bigint(),
    nonce: bytes32,
  }),
});

/**
 * A test payer as a wallet for the public clients. It signs as its kind of account does: a contract wallet by its
 * owner, an undeployed one with its deployment wrapped around the signature (ERC-6492).
 */
export function testPayerAccount(payer: TestPayerName): BuyerAccount {
  return {
    address: testPayers[payer].address,
    async signTypedData(typedData) {
      const { domain, message } = authorizationToSign.parse(typedData);
      const { verifyingContract, chainId, name, version } = domain;
      const { from: _from, ...terms } = message;
      const asset = { name, version, address: verifyingContract };
      const { signature } = await signAs(payer, { asset, chainId, ...terms });
      return signature;
    },
  };
}
