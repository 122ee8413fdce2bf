import { z } from "zod";
import type { MethodForPeople } from "../../../../src/methods/for-people.ts";
import { isBytes32, sameAddress } from "../../../../src/protocol/hex.ts";
import { finding } from "../../../../src/protocol/mistakes.ts";
import { address, bytes32, signature, uint256String } from "../../../../src/protocol/primitives.ts";
import { name, spender, transferFrom } from "./transfer-from-method.ts";

const transfer = z.object({
  from: address,
  to: address,
  value: uint256String,
  nonce: bytes32,
  since: uint256String,
  until: uint256String,
});

export const transferFromForPeople: MethodForPeople = {
  names: [name],
  label: "transferFrom",
  option: "transfer",
  member: "transfer",
  nameOf({ from: payer, value, nonce }) {
    return { payer, value, nonce: isBytes32(nonce) ? nonce : undefined, nonceSpace: spender };
  },
  explainSignature(payment, { at, network, asset, recover }) {
    const signer = recover(transferFrom.digester(asset, network.chainId)(payment), payment.signature);
    if (signer !== undefined && sameAddress(signer, payment.payer)) return [];
    return [finding("signed-by-another-key", at, { got: `${signer}`, expected: payment.payer })];
  },
  explainOffer: () => [],
  payloadSchema: () => z.object({ signature, transfer }),
  example() {
    const account = `0x${"01".repeat(20)}`;
    const nonce = `0x${"01".repeat(32)}`;
    return {
      signature: "0x",
      transfer: { from: account, to: account, value: "1", nonce, since: "0", until: "1" },
    };
  },
};
