import type { Chain, ChainQueries } from "../../../chain/chain.ts";
import type { Receipt } from "../../../chain/logs-and-receipts.ts";
import type { Revert } from "../../../chain/revert.ts";
import type { NetworkConfig } from "../../../config/serve-config.ts";
import type { Invalid } from "../../../protocol/catalogue.ts";
import { channelInvalid } from "../../../protocol/channel-reasons.ts";
import { type Address, type Hex, sameAddress } from "../../../protocol/hex.ts";
import { type Plan, type SettleCall, type Settling, usageOf } from "../../on-chain/settling.ts";
import { channelId, claimBatchDigest, type VoucherClaim } from "../channel.ts";
import { type ClaimPayload, channelMethods, claimOf, type RejectedClaim, withPayload } from "../payloads.ts";
import { contractCall, describeChannelRevert, settledAlone, unknownToTests } from "./actions.ts";
import { encodeClaim, encodeClaimWithSignature } from "./channel-calls.ts";
import { channelEvents } from "./channel-events.ts";
import { type ChannelState, readChannels } from "./channel-state.ts";
import { identifyByContent } from "./identify.ts";

/*
 * Claims write to the chain how much of the vouchers was charged. One bad row reverts a batch, and a row that was claimed already does
 * nothing, without a word: so the bad ones are found before, and each of the others has to show its event.
 */

/** With the signature check of wallets; 77,000 are used for the first row, and 25,000 for each other one. */
const claimGas = 100_000n;
const rowGas = 60_000n;

/** What rows of plain accounts use: the first one 77,000, each other one 25,000 with its calldata. */
const plainGas = (rows: readonly VoucherClaim[]) => 80_000n + 30_000n * BigInt(Math.max(rows.length - 1, 0));

const gasOf = (rows: readonly VoucherClaim[]) => claimGas + rowGas * BigInt(rows.length);

/** The call that claims rows by a signature of the authorizer that all of them have. */
export function claimCall(rows: readonly VoucherClaim[], signature: Hex) {
  return contractCall(encodeClaimWithSignature(rows, signature), gasOf(rows));
}

const transactionOf = ({ payment }: SettleCall) => {
  const { claims, signature } = claimOf(payment);
  return claimCall(claims, signature);
};

/** Signs for shops that leave it to the facilitator; or why it does not sign for these channels. */
export function authorizerFor(
  { name, receiverAuthorizer, signAsAuthorizer }: NetworkConfig,
  authorizers: readonly Address[],
): { sign(digest: Hex): Hex } | Invalid {
  if (receiverAuthorizer === undefined || signAsAuthorizer === undefined) {
    const fact = `The facilitator signs no claims and refunds on ${name}: send them with a signature of receiverAuthorizer`;
    return channelInvalid("authorizer_not_configured", fact);
  }
  const other = authorizers.find((one) => !sameAddress(one, receiverAuthorizer));
  if (other === undefined) return { sign: signAsAuthorizer };
  const fact = `receiverAuthorizer of a channel is ${other}, but the facilitator signs as ${receiverAuthorizer}`;
  return channelInvalid("authorizer_address_mismatch", fact);
}

type BadRow = { row: VoucherClaim; why: string };

/** Finds the rows that would revert a claim, by halves. */
async function findBad(chain: Chain, rows: readonly VoucherClaim[], about?: Hex): Promise<readonly BadRow[]> {
  const [first] = rows;
  if (first === undefined) return [];
  const call = contractCall(encodeClaim(rows), gasOf(rows));
  const revert = await chain.simulateFrom(first.channel.receiverAuthorizer, call, about);
  if (revert === undefined) return [];
  if (rows.length === 1) return [{ row: first, why: describeChannelRevert(revert) }];
  const middle = Math.ceil(rows.length / 2);
  const halves = await Promise.all([
    findBad(chain, rows.slice(0, middle), about),
    findBad(chain, rows.slice(middle), about),
  ]);
  return halves.flat();
}

function claimFails(rejected: readonly RejectedClaim[], more = ""): Invalid {
  const named = rejected.map(({ channelId: id, why }) => `${id} (${why})`).join(", ");
  const fact = `${rejected.length === 1 ? "A row" : `${rejected.length} rows`} cannot be claimed: ${named}${more}`;
  return channelInvalid("claim_simulation_failed", fact);
}

/** How much more each row claims: 0 of what is claimed already, and where another row of the channel claims more. */
function gainsOf(
  claims: readonly VoucherClaim[],
  ids: readonly Hex[],
  states: readonly Pick<ChannelState, "totalClaimed">[],
): readonly bigint[] {
  const totalOf = (index: number) => claims[index]?.totalClaimed ?? 0n;
  return ids.map((id, index) => {
    const isLess = ids.some(
      (other, at) =>
        other === id && (totalOf(at) > totalOf(index) || (totalOf(at) === totalOf(index) && at < index)),
    );
    const gain = totalOf(index) - (states[index]?.totalClaimed ?? 0n);
    return gain > 0n && !isLess ? gain : 0n;
  });
}

async function plan(chain: Chain, call: SettleCall): Promise<Plan | Invalid> {
  const { payment, id: about } = call;
  const { claims, signature } = claimOf(payment);
  const { network } = chain;
  const ids = claims.map(({ channel }) => channelId(channel, network.chainId));
  const states = await readChannels({ reader: chain.reader, about }, ids);
  const gains = gainsOf(claims, ids, states);
  const due = claims.filter((_, index) => (gains[index] ?? 0n) > 0n);
  if (due.length === 0) {
    const nothing = "Nothing is left to claim: every row is claimed already";
    // Nobody need sign anything for that.
    return { ...channelInvalid("cumulative_below_claimed", nothing), situation: "balance_too_small" };
  }
  const planFor = (rows: readonly VoucherClaim[], by: Hex, rejected: RejectedClaim[]): Plan => {
    const at = rows.map((row) => claims.indexOf(row));
    const payload: ClaimPayload = {
      claims: rows,
      signature: by,
      rejected,
      ids: at.flatMap((index) => ids[index] ?? []),
      gains: at.map((index) => gains[index] ?? 0n),
    };
    const planned = { ...call, payment: withPayload(payment, payload) };
    return { call: planned, transaction: transactionOf(planned) };
  };
  /** What the state shows needs no simulation: rows without a deposit cost nothing to make, and many simulations to find. */
  const findAllBad = async (): Promise<readonly BadRow[]> => {
    const seen = due.flatMap((row): BadRow | [] => {
      const { balance = 0n } = states[claims.indexOf(row)] ?? {};
      if (row.totalClaimed > row.maxClaimableAmount) return { row, why: "ClaimExceedsCeiling" };
      return row.totalClaimed > balance ? { row, why: "ClaimExceedsBalance" } : [];
    });
    const others = due.filter((row) => seen.every((one) => one.row !== row));
    return [...seen, ...(await findBad(chain, others, about))];
  };
  const rejectedOf = (bad: readonly BadRow[]) =>
    bad.map(({ row, why }) => ({ channelId: channelId(row.channel, network.chainId), why }));

  if (signature !== "0x") {
    const whole = planFor(claims, signature, []);
    const revert = await chain.simulateFrom(chain.operator, whole.transaction, about);
    if (revert === undefined) return whole;
    const bad = await findAllBad();
    return bad.length === 0 ? explainRevert(revert) : claimFails(rejectedOf(bad));
  }
  const authorizer = authorizerFor(
    network,
    claims.map(({ channel }) => channel.receiverAuthorizer),
  );
  if ("reason" in authorizer) return authorizer;
  const signed = (rows: readonly VoucherClaim[], rejected: RejectedClaim[]) =>
    planFor(rows, authorizer.sign(claimBatchDigest(rows, network.chainId)), rejected);
  const all = signed(due, []);
  if ((await chain.simulateFrom(chain.operator, all.transaction, about)) === undefined) return all;
  const bad = await findAllBad();
  const good = due.filter((row) => bad.every((one) => one.row !== row));
  return good.length === 0 ? claimFails(rejectedOf(bad)) : signed(good, rejectedOf(bad));
}

function explainRevert(revert: Revert): Invalid {
  return channelInvalid(
    "claim_simulation_failed",
    `The claim would revert on chain: ${describeChannelRevert(revert)}`,
  );
}

/** Returns the rows that a receipt shows no claim of, among those that were due. */
export function unclaimedIn(
  receipt: Receipt,
  { claims, ids = [], gains = [] }: Pick<ClaimPayload, "claims" | "ids" | "gains">,
): readonly Hex[] {
  const claimed = channelEvents(receipt).filter(({ name }) => name === "Claimed");
  return ids.filter((id, index) => {
    const total = claims[index]?.totalClaimed;
    const isShown = claimed.some(({ key, amounts }) => key === id && amounts[1] === total);
    return (gains[index] ?? 0n) > 0n && !isShown;
  });
}

/** The state of the rows of a claim; used once nothing is left of it. */
async function isClaimed({ reader }: Pick<ChainQueries, "reader">, { claims, ids = [] }: ClaimPayload) {
  if (ids.length === 0) return false;
  const states = await readChannels({ reader }, ids);
  return states.every(({ totalClaimed }, index) => totalClaimed >= (claims[index]?.totalClaimed ?? 0n));
}

/** A claim, as one transaction. */
export const claimSettling: Settling = {
  method: channelMethods.claim,
  identify: identifyByContent,
  plan,
  ...settledAlone(transactionOf),
  ...unknownToTests,
  usual: usageOf(80_000n, { most: claimGas + rowGas, bytes: 676 }),
  gasOf: ({ payment }) => plainGas(claimOf(payment).claims),

  prove: (receipt) => ({
    find({ payment }) {
      const missing = unclaimedIn(receipt, claimOf(payment));
      if (missing.length === 0) return { settled: true };
      return { settled: false, failure: `not claimed by this transaction: ${missing.join(", ")}` };
    },
  }),
  // What others claim leaves nothing to this one: the shop asks again, and learns that.
  findPayout: () => Promise.resolve(null),
  stateOf: async (chain, { payment }) => ({ used: await isClaimed(chain, claimOf(payment)) }),
  explain: (_chain, _call, revert) => Promise.resolve(explainRevert(revert)),
  isUsed: () => Promise.resolve(false),

  ownedBy(payment, { chainId }) {
    const { claims, signature } = claimOf(payment);
    if (signature !== "0x") return undefined;
    return {
      ids: claims.map(({ channel }) => channelId(channel, chainId)),
      opens: false,
      refuse: refuseStranger,
    };
  },
  channelMoves({ payment }) {
    const { ids = [], gains = [] } = claimOf(payment);
    const moves = ids.map((channel, index) => ({
      ...({ kind: "claim", channel } as const),
      amount: gains[index] ?? 0n,
    }));
    return { moves: moves.filter(({ amount }) => amount > 0n) };
  },

  describeSettled(_chain, { payment }, { hash }) {
    const { rejected } = claimOf(payment);
    const invalid =
      rejected.length === 0 ? undefined : claimFails(rejected, `; the others were claimed by ${hash}`);
    return Promise.resolve({ invalid });
  },
};

/** For organizations that did not open a channel: without its shop's own signature, only the one that did may ask. */
export function refuseStranger(): Invalid {
  return channelInvalid(
    "authorizer_address_mismatch",
    "A channel was not opened with an API key of this organization: claims and refunds of others need the signature of receiverAuthorizer",
  );
}
