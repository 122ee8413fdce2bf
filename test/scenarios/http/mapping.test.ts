import { encodeFunctionData } from "viem";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { mockUsdcAbi } from "../../../src/contracts/mockUsdc.ts";
import { strangerAddress, withHighS } from "../../../src/fixtures/cases/payment-spec.ts";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import { encodeSubmission } from "../../../src/methods/exact-eip3009/on-chain/token-calls.ts";
import type { Address, Hex } from "../../../src/protocol/hex.ts";
import { networks } from "../../../src/protocol/networks.ts";
import { tokenSignature, wrapErc6492 } from "../../../src/protocol/signed-payment.ts";
import { harnessAccounts } from "../../../src/published/accounts.ts";
import {
  type Body,
  type Order,
  post,
  sendFrom,
  signedRequest,
  startTestHarness,
} from "../../support/service.ts";

/*
 * design: every row of the mapping table, over HTTP, against a running chain, in both versions of the protocol.
 */

let harness: RunningHarness;
beforeAll(async () => {
  harness = await startTestHarness({ networks: ["base", "polygon"] });
});
afterAll(() => harness.close());

type Row = {
  situation: string;
  order?: Order;
  /** Changes the request after it was signed. */
  change?: (body: Body, version: 1 | 2) => void;
  /** Puts the chain into the state of the row; returns how to undo it. */
  arrange?: (body: Body) => Promise<(() => Promise<unknown>) | undefined>;
  verify: string;
  settleV1: string;
  /** Only for the version whose words it is about. */
  version?: 1 | 2;
};

const accepted = (body: Body, version: 1 | 2) =>
  version === 1 ? body.paymentPayload : body.paymentPayload.accepted;
const exact = (body: Body) => body.paymentPayload.payload;
const treasury = harnessAccounts.treasury.address;

async function asTreasury(functionName: "pause" | "unpause"): Promise<void>;
async function asTreasury(functionName: "blacklist" | "unBlacklist", account: Address): Promise<void>;
async function asTreasury(
  functionName: "pause" | "unpause" | "blacklist" | "unBlacklist",
  account?: Address,
) {
  const data =
    account === undefined
      ? encodeFunctionData({ abi: mockUsdcAbi, functionName: functionName as "pause" })
      : encodeFunctionData({ abi: mockUsdcAbi, functionName: functionName as "blacklist", args: [account] });
  await sendFrom(harness, treasury, networks.base.usdc.address, data);
}

/** Submits the authorization to the token directly, which every account may do that has seen the payment. */
async function submitDirectly(body: Body): Promise<void> {
  const { authorization, signature } = exact(body);
  const data = encodeSubmission(authorization, signature as Hex);
  await sendFrom(harness, strangerAddress, networks.base.usdc.address, data);
}

const rows: Row[] = [
  {
    situation: "payload malformed",
    change: (body) => delete body.paymentPayload.payload,
    verify: "invalid_payload",
    settleV1: "invalid_payload",
  },
  {
    situation: "a 31-byte nonce",
    change: (body) => {
      exact(body).authorization.nonce = `0x${"01".repeat(31)}`;
    },
    verify: "invalid_payload",
    settleV1: "invalid_payload",
  },
  {
    situation: "x402Version not 1 or 2",
    change: (body) => {
      body.paymentPayload.x402Version = 3;
    },
    verify: "invalid_x402_version",
    settleV1: "invalid_payload",
    version: 1,
  },
  {
    situation: "scheme of the payload not exact",
    change: (body, version) => {
      accepted(body, version).scheme = "stream";
    },
    verify: "unsupported_scheme",
    settleV1: "invalid_payload",
  },
  {
    situation: "scheme of the requirements not exact",
    change: (body) => {
      body.paymentRequirements.scheme = "stream";
    },
    verify: "unsupported_scheme",
    settleV1: "invalid_payment_requirements",
  },
  {
    situation: "network of the payload unknown",
    change: (body, version) => {
      accepted(body, version).network = "solana";
    },
    verify: "invalid_network",
    settleV1: "invalid_payload",
  },
  {
    situation: "network of the requirements unknown",
    change: (body) => {
      body.paymentRequirements.network = "solana";
    },
    verify: "invalid_network",
    settleV1: "invalid_payment_requirements",
  },
  {
    situation: "network not enabled here",
    change: (body, version) => {
      const network = version === 1 ? "optimism" : "eip155:10";
      accepted(body, version).network = network;
      body.paymentRequirements.network = network;
    },
    verify: "invalid_network",
    settleV1: "invalid_payment_requirements",
  },
  {
    situation: "two networks that differ",
    change: (body, version) => {
      body.paymentRequirements.network = version === 1 ? "polygon" : "eip155:137";
    },
    verify: "invalid_network",
    settleV1: "invalid_payment_requirements",
  },
  {
    situation: "requirements malformed",
    change: (body) => {
      body.paymentRequirements.asset = 5;
    },
    verify: "invalid_payment_requirements",
    settleV1: "invalid_payment_requirements",
  },
  {
    situation: "asset not allowed",
    change: (body) => {
      body.paymentRequirements.asset = strangerAddress;
    },
    verify: "invalid_payment_requirements",
    settleV1: "invalid_payment_requirements",
  },
  {
    situation: "payTo not the facilitator contract",
    change: (body) => {
      body.paymentRequirements.payTo = strangerAddress;
    },
    verify: "invalid_payment_requirements",
    settleV1: "invalid_payment_requirements",
  },
  {
    situation: "authorization.to not the facilitator contract",
    order: { terms: { to: strangerAddress } },
    verify: "invalid_exact_evm_payload_recipient_mismatch",
    settleV1: "invalid_payload",
  },
  {
    situation: "value below the required amount",
    order: { terms: { value: 9_999n } },
    verify: "invalid_exact_evm_payload_authorization_value",
    settleV1: "invalid_payload",
  },
  {
    situation: "value above the required amount",
    order: { terms: { value: 10_001n } },
    verify: "invalid_exact_evm_payload_authorization_value",
    settleV1: "invalid_payload",
  },
  {
    situation: "not valid yet",
    order: { validAfter: 60 },
    verify: "invalid_exact_evm_payload_authorization_valid_after",
    settleV1: "invalid_payload",
  },
  {
    situation: "expired",
    order: { validBefore: -1 },
    verify: "invalid_exact_evm_payload_authorization_valid_before",
    settleV1: "invalid_payload",
  },
  {
    situation: "expires in less than six seconds",
    order: { validBefore: 5 },
    verify: "invalid_exact_evm_payload_authorization_valid_before",
    settleV1: "invalid_payload",
  },
  {
    situation: "signed by another key",
    change: (body) => {
      exact(body).authorization.from = harnessAccounts.recipient.address;
    },
    verify: "invalid_exact_evm_payload_signature",
    settleV1: "invalid_payload",
  },
  {
    situation: "signed for another chain",
    order: { terms: { chainId: networks.polygon.chainId } },
    verify: "invalid_exact_evm_payload_signature",
    settleV1: "invalid_payload",
  },
  {
    situation: "a signature of 64 bytes",
    change: (body) => {
      exact(body).signature = exact(body).signature.slice(0, -2);
    },
    verify: "invalid_exact_evm_payload_signature",
    settleV1: "invalid_payload",
  },
  {
    situation: "a signature with a high s",
    change: (body) => {
      exact(body).signature = withHighS(exact(body).signature);
    },
    verify: "invalid_exact_evm_payload_signature",
    settleV1: "invalid_payload",
  },
  {
    situation: "an empty signature",
    change: (body) => {
      exact(body).signature = "0x";
    },
    verify: "invalid_exact_evm_payload_signature",
    settleV1: "invalid_payload",
  },
  {
    situation: "a delegated account whose delegate refuses (EIP-7702)",
    order: { payer: "hijacked" },
    verify: "invalid_exact_evm_payload_signature",
    settleV1: "invalid_payload",
  },
  {
    situation: "a wallet that burns all gas it is given",
    order: { payer: "gasBurner" },
    verify: "invalid_exact_evm_payload_signature",
    settleV1: "invalid_payload",
  },
  {
    situation: "undeployed smart wallet",
    order: { payer: "undeployedWallet" },
    change: (body) => {
      const payload = exact(body);
      if (payload) payload.signature = wrapErc6492(strangerAddress, "0x", tokenSignature(payload.signature));
    },
    verify: "invalid_exact_evm_payload_undeployed_smart_wallet",
    settleV1: "invalid_payload",
  },
  {
    situation: "no balance",
    order: { payer: "empty" },
    verify: "insufficient_funds",
    settleV1: "insufficient_funds",
  },
  {
    situation: "a value beyond all balances",
    order: { amount: 2n ** 256n - 1n },
    verify: "insufficient_funds",
    settleV1: "insufficient_funds",
  },
  {
    situation: "payer blacklisted",
    order: { payer: "blacklisted" },
    verify: "invalid_transaction_state",
    settleV1: "invalid_transaction_state",
  },
  {
    situation: "recipient blacklisted",
    arrange: async () => {
      await asTreasury("blacklist", harnessAccounts.recipient.address);
      return () => asTreasury("unBlacklist", harnessAccounts.recipient.address);
    },
    verify: "invalid_transaction_state",
    settleV1: "invalid_transaction_state",
  },
  {
    situation: "token paused",
    arrange: async () => {
      await asTreasury("pause");
      return () => asTreasury("unpause");
    },
    verify: "invalid_transaction_state",
    settleV1: "invalid_transaction_state",
  },
  {
    situation: "authorization used by another account",
    arrange: async (body) => {
      await submitDirectly(body);
      return undefined;
    },
    verify: "invalid_transaction_state",
    settleV1: "invalid_transaction_state",
  },
];

describe.each([1, 2] as const)("version %i", (version) => {
  const applicable = rows.filter((row) => row.version === undefined || row.version === version);

  test.each(applicable)("$situation", async ({ order, change, arrange, verify, settleV1 }) => {
    const body = await signedRequest(harness, { ...order, x402Version: version });
    change?.(body, version);
    const undo = await arrange?.(body);
    const sentBefore = await operatorTransactions();

    const verdict = await post(harness, "verify", body);
    const outcome = await post(harness, "settle", body);
    await undo?.();

    const network =
      typeof accepted(body, version)?.network === "string" ? accepted(body, version).network : "";
    const payer = exact(body)?.authorization?.from;
    expect(verdict.status).toBe(200);
    expect(verdict.body).toMatchObject({
      isValid: false,
      invalidReason: verify,
      invalidMessage: expect.any(String),
      network,
      authContext: { organizationId: "org_local" },
    });
    expect(outcome.status).toBe(200);
    expect(outcome.body).toMatchObject({
      success: false,
      errorReason: version === 1 ? settleV1 : verify,
      errorMessage: expect.any(String),
      transaction: "",
      network,
    });
    expect(verdict.body.payer).toBe(payer);
    expect(outcome.body.payer).toBe(payer);
    expect(await operatorTransactions()).toBe(sentBefore);
  });

  test("a good payment verifies, settles once, and is used afterwards", async () => {
    const body = await signedRequest(harness, { x402Version: version });
    expect(await post(harness, "verify", body)).toMatchObject({
      status: 200,
      body: {
        isValid: true,
        authContext: { organizationId: "org_local", authMethod: "organization_specific" },
      },
    });
    const first = await post(harness, "settle", body);
    expect(first).toMatchObject({
      status: 200,
      body: { success: true, transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/) },
    });
    expect(first.headers.location).toMatch(/^\/v1\/settlements\/0x[0-9a-f]{64}$/);

    const second = await post(harness, "settle", body);
    expect(second.body).toMatchObject({
      success: false,
      errorReason: "invalid_transaction_state",
      transaction: "",
    });
    expect(second.body.errorMessage).toContain(first.body.transaction);
    expect((await post(harness, "verify", body)).body).toMatchObject({
      isValid: false,
      invalidReason: "invalid_transaction_state",
    });
  });

  test.each(["funded", "smartWallet", "delegated"] as const)(
    "a payment of %s settles for real",
    async (payer) => {
      const body = await signedRequest(harness, { payer, x402Version: version });
      expect((await post(harness, "verify", body)).body).toMatchObject({ isValid: true });
      expect((await post(harness, "settle", body)).body).toMatchObject({ success: true });
    },
  );

  test("a signature with v 0 or 1, as some signers make it, is taken", async () => {
    const body = await signedRequest(harness, { x402Version: version });
    const { signature } = exact(body);
    exact(body).signature = `${signature.slice(0, -2)}${signature.endsWith("1b") ? "00" : "01"}`;
    expect((await post(harness, "settle", body)).body).toMatchObject({ success: true });
  });
});

async function operatorTransactions(): Promise<unknown> {
  return harness.chains.base?.node.request(
    "eth_getTransactionCount",
    harnessAccounts.operator.address,
    "pending",
  );
}
