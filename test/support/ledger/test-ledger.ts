import { createLedger, type LedgerOptions } from "../../../src/ledger/create-ledger.ts";
import type { Database } from "../../../src/ledger/database/database.ts";
import type { ClaimRequest, Claims, Conclusion, Ledger } from "../../../src/ledger/ledger.ts";
import type { SignedAttempt } from "../../../src/ledger/settlement.ts";
import { type Address, type Hex, keccak256Text, uintWord } from "../../../src/protocol/hex.ts";
import { settlementId } from "../../../src/protocol/signed-payment.ts";

/** A clock that tests move by hand; it starts late enough for a lease to begin earlier. */
export function createClock() {
  let time = 1_800_000_000_000;
  return {
    now: () => time,
    advance: (ms: number) => {
      time += ms;
    },
  };
}

export const chainId = 8453;
export const operator: Address = "0xaAaAaAaaAaAaAaaAaAAAAAAAAaaaAaAaAaaAaaAa";
export const asset: Address = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913";
export const seconds = 1_000;
export const hours = 60 * 60 * seconds;

/** An address, hash or nonce made from a number. */
export const addressOf = (number: number): Address => `0x${uintWord(BigInt(number)).slice(24)}`;
export const hashOf = (name: string | number): Hex => keccak256Text(String(name));

/** The window of an authorization that is valid from the beginning until before a time in Unix seconds. */
export const until = (validBefore: bigint) => ({ first: 1n, last: validBefore - 1n });

/** A payment, by default by payer 1 from a balance of 100, read at block 50. */
export function paymentOf(
  nonce: string | number,
  changes: Partial<Omit<ClaimRequest, "payer">> & { payer?: number } = {},
): ClaimRequest {
  const { payer: payerNumber = 1, ...others } = changes;
  const payer = addressOf(payerNumber);
  return {
    id: settlementId(chainId, others.asset ?? asset, payer, hashOf(nonce)),
    organizationId: "org_shop",
    network: "base",
    chainId,
    method: "exact-eip3009",
    asset,
    payer,
    payerCode: null,
    nonce: hashOf(nonce),
    nonceSpace: others.asset ?? asset,
    digest: hashOf(`digest ${nonce}`),
    amount: 10n,
    maximum: null,
    window: until(1_900_000_000n),
    payload: null,
    payTo: null,
    contract: null,
    signature: `0x${"ab".repeat(65)}`,
    recipient: addressOf(0xbeef),
    balance: 100n,
    balanceBlock: 50n,
    ...others,
  };
}

/** Pretends to sign: the hash depends only on the txNonce, so the ledger refuses a txNonce that is used twice. */
export async function signAsIf(txNonce: number): Promise<SignedAttempt> {
  return {
    hash: hashOf(`transaction ${txNonce}`),
    raw: `0x02${uintWord(BigInt(txNonce))}`,
    maxFeePerGas: 2n ** 70n,
    maxPriorityFeePerGas: 1_000_000n,
  };
}

export type TestLedger = ReturnType<typeof createTestLedger>;
export type TestClock = ReturnType<typeof createClock>;

/** A new ledger whose operator is introduced at a txNonce, with its database and clock. */
export async function openTestLedger(database: { open(): Promise<Database> }, txNonce = 0) {
  const db = await database.open();
  const clock = createClock();
  const ledger = createTestLedger(db, clock.now);
  await ledger.introduce(txNonce);
  return { db, clock, ledger };
}

/** A ledger with the functions of all its stores in one object, and the few steps that most tests need. */
export function createTestLedger(
  db: Database,
  now: () => number,
  options: Partial<Omit<LedgerOptions, "db" | "now">> = {},
) {
  const ledger: Ledger = createLedger({ db, instanceId: "instance-1", now, ...options });
  const { claims, outcomes, leases, recoveries } = ledger;
  const at = { chainId, address: operator };
  return {
    ...ledger,
    ...claims,
    ...outcomes,
    ...leases,
    ...recoveries,
    introduce: (txNonce = 0) => claims.introduceOperator(chainId, operator, txNonce),
    claimAll: (requests: readonly ClaimRequest[], sign: Parameters<Claims["claim"]>[2] = signAsIf) =>
      claims.claim({ ...at, maxUnmined: 1_000 }, requests, sign),
    /** Records that the transaction with this txNonce was mined, and how its settlements ended. */
    mine: (txNonce: number, conclusions: readonly Conclusion[], blockNumber = 60n, gasCost?: bigint) =>
      outcomes.conclude(
        {
          chainId,
          operator,
          txNonce,
          hash: hashOf(`transaction ${txNonce}`),
          blockNumber,
          blockHash: hashOf(`block ${blockNumber}`),
          ...(gasCost === undefined ? {} : { gasCost }),
        },
        conclusions,
      ),
  };
}

export const settled = ({ id }: { id: Hex }): Conclusion => ({ id, state: "settled" });
export const failed = ({ id }: { id: Hex }, failure = "the transaction was reverted"): Conclusion => ({
  id,
  state: "failed",
  failure,
});
