import { z } from "zod";
import { missing } from "../../../../src/methods/explain-members.ts";
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
  words: transferFrom.words,
  nameOf({ from: payer, value, nonce }) {
    return { payer, value, nonce: isBytes32(nonce) ? nonce : undefined, nonceSpace: spender };
  },
  explainMessage: ({ nonce }) =>
    isBytes32(nonce) ? [] : [missing("transfer.nonce", nonce, "32 bytes: 0x and 64 hexadecimal digits")],
  explainSignature(payload, { at, signature: signed, asked, network, recover }) {
    const parsed = transfer.safeParse(payload.transfer);
    const asset = address.safeParse(asked?.asset);
    if (!parsed.success || !asset.success || network === undefined) return [];
    const { from, to, value, nonce, since, until } = parsed.data;
    const payment = { payer: from, payTo: to, limit: value, nonce, window: { first: since, last: until } };
    const rest = { method: name, asset: asset.data, nonceSpace: spender, signature: signed, payload: null };
    const signer = recover(
      transferFrom.digester(network.usdc, network.chainId)({ ...payment, ...rest }),
      signed,
    );
    if (signer !== undefined && sameAddress(signer, from)) return [];
    return [finding("signed-by-another-key", at, { got: `${signer}`, expected: from })];
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
