import type { Invalid } from "../../protocol/catalogue.ts";
import { channelInvalid } from "../../protocol/channel-reasons.ts";
import { type Address, type Hex, sameAddress } from "../../protocol/hex.ts";
import type { SignedPayment } from "../../protocol/signed-payment.ts";
import { channelId, claimBatchDigest, type VoucherClaim } from "./channel.ts";
import type { ChannelSource, ChannelState } from "./channel-source.ts";
import { type ClaimPayload, claimOf, type RejectedClaim, withPayload } from "./payloads.ts";

/*
 * Claims record on chain how much of the vouchers was charged. One bad row reverts the whole batch, and a row that was
 * already claimed silently does nothing. So both are sorted out beforehand.
 */

/** The facilitator's signer for these channels, or the refusal if it does not sign for them. */
export function authorizerFor(
  { name, authorizers = [] }: ChannelSource["network"],
  named: readonly Address[],
): { sign(digest: Hex): Hex } | Invalid {
  const [first] = named;
  const [offered] = authorizers;
  if (offered === undefined) {
    const fact = `The facilitator signs no claims and refunds on ${name}: send them with a signature of receiverAuthorizer`;
    return channelInvalid("authorizer_not_configured", fact);
  }
  const own =
    authorizers.find(({ address }) => first !== undefined && sameAddress(address, first)) ?? offered;
  const other = named.find((one) => !sameAddress(one, own.address));
  if (other === undefined) return own;
  const fact = `receiverAuthorizer of a channel is ${other}, but the facilitator signs as ${own.address}`;
  return channelInvalid("authorizer_address_mismatch", fact);
}

type BadRow = { row: VoucherClaim; why: string };

/** Finds the rows that would revert a claim, by bisection. */
async function findBad(source: ChannelSource, rows: readonly VoucherClaim[]): Promise<readonly BadRow[]> {
  const [first] = rows;
  if (first === undefined) return [];
  const why = await source.explainClaim(rows);
  if (why === undefined) return [];
  if (rows.length === 1) return [{ row: first, why }];
  const middle = Math.ceil(rows.length / 2);
  const halves = await Promise.all([
    findBad(source, rows.slice(0, middle)),
    findBad(source, rows.slice(middle)),
  ]);
  return halves.flat();
}

/** Refuses a claim for rows that cannot be claimed. */
export function claimFails(rejected: readonly RejectedClaim[], more = ""): Invalid {
  const named = rejected.map(({ channelId: id, why }) => `${id} (${why})`).join(", ");
  const fact = `${rejected.length === 1 ? "A row" : `${rejected.length} rows`} cannot be claimed: ${named}${more}`;
  return channelInvalid("claim_simulation_failed", fact);
}

/** Refuses a claim that would revert as a whole. */
export function claimReverts(why: string): Invalid {
  return channelInvalid("claim_simulation_failed", `The claim would revert on chain: ${why}`);
}

const tooDear = "costs more than one transaction may";

/** The first rows that fit into one transaction; at least one. */
function firstFitting(rows: readonly VoucherClaim[], fits: FitsTransaction): readonly VoucherClaim[] {
  let count = rows.length;
  while (count > 1 && !fits(rows.slice(0, count))) count = Math.ceil(count / 2);
  return rows.slice(0, count);
}

/** Returns true if a claim of these rows stays below the cost limit of a transaction. */
export type FitsTransaction = (rows: readonly VoucherClaim[]) => boolean;

/** The additional amount that each row claims: 0 if it is claimed already, or if another row of its channel claims more. */
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

/**
 * Returns the claim to send. If the shop has signed it, it has all rows. If the facilitator signs, it has the rows that are
 * due and valid, as many as fit into one transaction; sending the request again claims the next ones.
 */
export async function planClaim(
  source: ChannelSource,
  payment: SignedPayment,
  fits: FitsTransaction = () => true,
): Promise<SignedPayment | Invalid> {
  const { claims, signature } = claimOf(payment);
  const { network } = source;
  const ids = claims.map(({ channel }) => channelId(channel, network.chainId));
  const states = await source.readChannels(ids);
  const gains = gainsOf(claims, ids, states);
  const due = claims.filter((_, index) => (gains[index] ?? 0n) > 0n);
  if (due.length === 0) {
    const nothing = "Nothing is left to claim: every row is claimed already";
    // The situation differs from the reason's usual one: there is nothing to sign again.
    return { ...channelInvalid("cumulative_below_claimed", nothing), situation: "balance_too_small" };
  }
  const planFor = (rows: readonly VoucherClaim[], by: Hex, rejected: RejectedClaim[]): SignedPayment => {
    const at = rows.map((row) => claims.indexOf(row));
    const payload: ClaimPayload = {
      claims: rows,
      signature: by,
      rejected,
      ids: at.flatMap((index) => ids[index] ?? []),
      gains: at.map((index) => gains[index] ?? 0n),
    };
    return withPayload(payment, payload);
  };
  /** Checks the state before simulating: rows without a deposit are free to make, but take many simulations to find. */
  const findAllBad = async (): Promise<readonly BadRow[]> => {
    const seen = due.flatMap((row): BadRow | [] => {
      const { balance = 0n } = states[claims.indexOf(row)] ?? {};
      if (row.totalClaimed > row.maxClaimableAmount) return { row, why: "ClaimExceedsCeiling" };
      return row.totalClaimed > balance ? { row, why: "ClaimExceedsBalance" } : [];
    });
    const others = due.filter((row) => seen.every((one) => one.row !== row));
    return [...seen, ...(await findBad(source, others))];
  };
  const rejectedOf = (bad: readonly BadRow[]) =>
    bad.map(({ row, why }) => ({ channelId: channelId(row.channel, network.chainId), why }));

  if (signature !== "0x") {
    const why = await source.explainClaim(claims, signature);
    if (why === undefined && claims.length > 1 && !fits(claims))
      return channelInvalid("claim_simulation_failed", `The claim ${tooDear}: claim fewer rows at a time`);
    if (why === undefined) return planFor(claims, signature, []);
    const bad = await findAllBad();
    return bad.length === 0 ? claimReverts(why) : claimFails(rejectedOf(bad));
  }
  const authorizer = authorizerFor(
    network,
    claims.map(({ channel }) => channel.receiverAuthorizer),
  );
  if ("reason" in authorizer) return authorizer;
  const sign = (rows: readonly VoucherClaim[]) => authorizer.sign(claimBatchDigest(rows, network.chainId));
  const bad = (await source.explainClaim(due, sign(due))) === undefined ? [] : await findAllBad();
  const good = due.filter((row) => bad.every((one) => one.row !== row));
  if (good.length === 0) return claimFails(rejectedOf(bad));
  const rows = firstFitting(good, fits);
  const later = good.slice(rows.length).map((row) => ({ row, why: `${tooDear}: claim again` }));
  return planFor(rows, sign(rows), rejectedOf([...bad, ...later]));
}
