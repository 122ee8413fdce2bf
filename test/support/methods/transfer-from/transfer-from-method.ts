import type { Method } from "../../../../src/methods/method.ts";
import { type Address, addressWord, keccak256, toHex, uintWord } from "../../../../src/protocol/hex.ts";
import type { SignedPayment } from "../../../../src/protocol/signed-payment.ts";
import {
  propertyOf,
  readBytes32,
  readInner,
  readSignature,
  readUint256,
  readWireAddress,
} from "../../../../src/protocol/wire-values.ts";

/*
 * A payment method that exists only in tests, with its own scheme: the payer approves a contract and signs (chain,
 * payer, value, start, end, nonce); the operator makes that contract call `transferFrom`. Everything it needs is in
 * this folder.
 */

export const name = "test-transfer-from";

/** The address of the contract that payers approve. */
export const spender: Address = "0x00000000000000000000000000000000f0011007";

export const transferFrom: Method = {
  name,
  scheme: "test-pull",
  versions: [2],
  spender,
  transfer: "transfer-from",
  takesLess: false,
  offerNeeds: [],
  stateRefusals: () => [],
  extra: () => ({ assetTransferMethod: "transfer-from" }),
  words: {
    ...{ payer: "transfer.from", nonce: "transfer.nonce", payTo: "transfer.to", limit: "transfer.value" },
    ...{ start: "since", end: "until" },
    ...{
      startsSaid: "from",
      endsSaid: "until",
      includesBounds: true,
      reasons: {},
      reference: "eip3009",
      judge: "The token",
      domain: () => "no domain",
    },
  },
  owns: (payload) => propertyOf(payload, "transfer") !== undefined,
  payerOf: (payload) => propertyOf(propertyOf(payload, "transfer"), "from"),
  read(payload, asset) {
    const transfer = readInner(payload, "transfer");
    return {
      ...{ method: name, asset, nonceSpace: spender, payload: "approved" },
      signature: readSignature(payload, "signature"),
      payer: readWireAddress(transfer, "from"),
      payTo: readWireAddress(transfer, "to"),
      limit: readUint256(transfer, "value"),
      nonce: readBytes32(transfer, "nonce"),
      window: { first: readUint256(transfer, "since"), last: readUint256(transfer, "until") },
    };
  },
  digester:
    (_, chainId) =>
    ({ payer, limit, nonce, window }) =>
      keccak256(
        `0x${uintWord(BigInt(chainId))}${addressWord(payer)}${uintWord(limit)}${uintWord(window.first)}${uintWord(window.last)}${nonce.slice(2)}`,
      ),
  describe: async ({ payer, payTo, limit, window }) => [
    { label: "payer", value: payer, kind: "other" },
    { label: "to", value: payTo, kind: "recipient" },
    { label: "value", value: `${limit}`, kind: "amount" },
    { label: "since", value: `${window.first}`, kind: "time" },
    { label: "until", value: `${window.last}`, kind: "time" },
  ],
  describeWrongSignature: async () => "Sign the hash of chain, payer, value, end and nonce.",
  async sign(
    signer,
    { asset, chainId, to, value, validAfter = 0n, validBefore, nonce, from = signer.address },
  ) {
    if (!("signDigest" in signer)) throw new Error("payments of the test's method are signed by a key");
    const unsigned: SignedPayment = {
      method: name,
      payer: from,
      payTo: to,
      asset: asset.address,
      limit: value,
      nonce: nonce ?? toHex(globalThis.crypto.getRandomValues(new Uint8Array(32))),
      nonceSpace: spender,
      signature: "0x",
      payload: "approved",
      window: { first: validAfter, last: validBefore },
    };
    const digest = transferFrom.digester({ ...asset, decimals: 6 }, chainId)(unsigned);
    return { ...unsigned, signature: await signer.signDigest(digest) };
  },
  write: ({ payer, payTo, limit, nonce, window, signature }) => ({
    signature,
    transfer: {
      from: payer,
      to: payTo,
      value: `${limit}`,
      nonce,
      since: `${window.first}`,
      until: `${window.last}`,
    },
  }),
};
