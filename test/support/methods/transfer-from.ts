import { calldataGas } from "../../../src/chain/fees.ts";
import { selector } from "../../../src/chain/views.ts";
import type { Method } from "../../../src/methods/method.ts";
import { decodeEvents } from "../../../src/methods/on-chain/events.ts";
import type { Settling } from "../../../src/methods/on-chain/settling.ts";
import { createWaysToPay } from "../../../src/methods/on-chain/ways-to-pay.ts";
import { invalid } from "../../../src/protocol/catalogue.ts";
import {
  type Address,
  addressWord,
  keccak256,
  sameAddress,
  toHex,
  uintWord,
} from "../../../src/protocol/hex.ts";
import type { SignedPayment } from "../../../src/protocol/signed-payment.ts";
import {
  propertyOf,
  readBytes32,
  readInner,
  readSignature,
  readUint256,
  readWireAddress,
} from "../../../src/protocol/wire-values.ts";

/*
 * A way to pay that only tests have: the payer approves a contract and signs (chain, payer, value, nonce); the operator has
 * that contract call `transferFrom`. All that it takes is in this file.
 */

const name = "test-transfer-from";

/** Where the contract stands that payers approve. */
export const spender: Address = "0x00000000000000000000000000000000f0011007";

/** Its code: makes each 100 bytes of its calldata a call of the token, and reverts when one of them fails. */
export const spenderCode = (token: Address) =>
  `0x60005b368110600a57005b606481600037600060006064600060007${`3${addressWord(token).slice(24)}`}5af1603a5760006000fd5b606401600256` as const;

export const transferFrom: Method = {
  name,
  scheme: "exact",
  versions: [1, 2],
  transfer: "transfer-from",
  takesLess: false,
  stateRefusals: () => [],
  extra: () => ({ assetTransferMethod: "transfer-from" }),
  words: {
    ...{ payer: "transfer.from", nonce: "transfer.nonce", payTo: "transfer.to", limit: "transfer.value" },
    ...{ start: "0", end: "until" },
    ...{
      startsSaid: "from",
      endsSaid: "until",
      includesBounds: true,
      reasons: {},
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
      window: { first: 0n, last: readUint256(transfer, "until") },
    };
  },
  digester:
    (_, chainId) =>
    ({ payer, limit, nonce, window }) =>
      keccak256(
        `0x${uintWord(BigInt(chainId))}${addressWord(payer)}${uintWord(limit)}${uintWord(window.last)}${nonce.slice(2)}`,
      ),
  describe: async ({ payer, limit }) => [
    { label: "payer", value: payer, kind: "other" },
    { label: "value", value: `${limit}`, kind: "amount" },
  ],
  describeWrongSignature: async () => "Sign the hash of chain, payer, value, end and nonce.",
  async sign(signer, { asset, chainId, to, value, validBefore, nonce, from = signer.address }) {
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
      window: { first: 0n, last: validBefore },
    };
    const digest = transferFrom.digester({ ...asset, decimals: 6 }, chainId)(unsigned);
    return { ...unsigned, signature: await signer.signDigest(digest) };
  },
  write: ({ payer, payTo, limit, nonce, window, signature }) => ({
    signature,
    transfer: { from: payer, to: payTo, value: `${limit}`, nonce, until: `${window.last}` },
  }),
};

const settling: Settling = {
  method: name,
  plan: ({ network }, call) => ({ call, transaction: settling.transaction([call], network) }),
  transaction(calls) {
    const words = calls.map(
      ({ payment, recipient }) =>
        `${selector("transferFrom(address,address,uint256)").slice(2)}${addressWord(payment.payer)}${addressWord(recipient)}${uintWord(payment.limit)}`,
    );
    const data = `0x${words.join("")}` as const;
    return { to: spender, data, gas: 100_000n + BigInt(calls.length) * 100_000n + calldataGas(data) };
  },
  batchKey: ({ payment }) => payment.asset,
  count: (calls, _network, { maxPayments }) => Math.min(calls.length, maxPayments),
  settlesSeveral: (data) => data.length > 2 + 200,
  usual: { gas: 80_000n, gasLimit: 300_000n, bytes: 100 },
  prove(receipt) {
    const transfers = decodeEvents(receipt).filter((event) => event.name === "Transfer");
    return {
      find({ payment, recipient }) {
        const place = transfers.findIndex(
          ({ emitter, from, to, value }) =>
            sameAddress(emitter, payment.asset) &&
            sameAddress(from, payment.payer) &&
            sameAddress(to, recipient) &&
            value === payment.limit,
        );
        if (place === -1) return undefined;
        // One transfer proves one payment.
        transfers.splice(place, 1);
        return { settled: true };
      },
    };
  },
  findPayout: async () => null,
  stateOf: async () => ({ used: false }),
  explain: async () => invalid("balance_too_small", "The payer has not approved, or not got, so much"),
  isUsed: async () => false,
};

export const transferFromWays = createWaysToPay([transferFrom], [settling]);
