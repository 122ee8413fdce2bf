import type { Chain, ChainQueries } from "../../../chain/chain.ts";
import { type Receipt, readReceiptsAt, transactionCall } from "../../../chain/logs-and-receipts.ts";
import { balanceOf } from "../../../chain/views.ts";
import type { Invalid } from "../../../protocol/catalogue.ts";
import { sameAddress } from "../../../protocol/hex.ts";
import { type SignedPayment, unwrapErc6492 } from "../../../protocol/signed-payment.ts";
import { UndeterminedError } from "../../../util/errors.ts";
import { membersOf } from "../../../util/json.ts";
import { withoutApproval } from "../../approval.ts";
import { allowanceOf, approvalSources } from "../../on-chain/allowance.ts";
import { decodeEvents } from "../../on-chain/events.ts";
import { isOfPermit2, noncesOf } from "../../on-chain/nonces.ts";
import { planApproval, prepare } from "../../on-chain/prepare-approval.ts";
import {
  type Payout,
  type Plan,
  type Search,
  type SettleCall,
  type Settling,
  usageOf,
} from "../../on-chain/settling.ts";
import { amount, askFacts, createDiagnosing, tokenSources } from "../../on-chain/state-facts.ts";
import { createIsUsed } from "../../on-chain/use-reader.ts";
import { permit2Address } from "../../permit2-domain.ts";
import { stateJson } from "../channel-source.ts";
import { multicall3Address } from "../contracts.ts";
import { ownedChannels } from "../owners.ts";
import { channelMethods, depositOf } from "../payloads.ts";
import { depositReverts, depositStateRefusals, judgeDeposit } from "../vouchers.ts";
import { describeChannelRevert, settledAlone, unknownToTests } from "./actions.ts";
import { sourceOf } from "./chain-source.ts";
import { channelEvents, channelLogs, withdrawalLogs } from "./channel-events.ts";
import { confirmedBlock, readChannel } from "./channel-state.ts";
import {
  deployment,
  depositCall,
  depositEffect,
  depositGas,
  depositTransaction,
} from "./deposit-transaction.ts";

/*
 * Deposits are payments with a signed authorization that can be used once. They bring tokens into a channel, whoever submits
 * them. The proof of a deposit is the channel's `Deposited` event.
 */

/** The number of recent blocks to search for a deposit that somebody else has submitted before us. */
const recentBlocks = 2_000n;

/** Plans a deposit, with Permit2 including the approval that came with it. */
async function plan(
  chain: Chain,
  asked: SettleCall,
  isUnderWay?: () => Promise<boolean>,
): Promise<Plan | Invalid> {
  const { payment, id, price = 0n } = asked;
  const judged = await judgeDeposit(
    sourceOf(chain, id, unwrapErc6492(payment.signature)),
    payment,
    price,
    async () => {
      const prepared = await prepare(chain, asked, isUnderWay);
      const [call, unapproved] =
        "reason" in prepared ? [{ ...asked, payment: withoutApproval(payment) }, prepared] : [prepared];
      const byApproval = isOfPermit2(payment) ? planApproval(call) : undefined;
      const sources = {
        used: noncesOf(payment).use,
        balance: amount(balanceOf(payment.asset, payment.payer)),
        ...(byApproval?.bringsApproval === false && { allowance: amount(allowanceOf(payment)) }),
      };
      const facts = await askFacts(chain.reader, sources, id);
      const settledBy = facts.used ? await findRecentDeposit(chain, asked) : undefined;
      return { ...facts, unapproved, call, byApproval, settledBy, isDone: settledBy !== undefined };
    },
  );
  if ("reason" in judged) return judged;
  const { facts, extra } = judged;
  const { call, byApproval, settledBy } = facts;
  const transaction = depositTransaction(call);
  // A deposit that was already made no longer needs an approval.
  return settledBy === undefined
    ? { call, transaction, effect: depositEffect(call.payment, transaction), ...byApproval, extra }
    : { call, transaction, settledBy, extra };
}

/**
 * Finds a deposit that somebody else has submitted; undefined if the newest blocks have none.
 *
 * @throws UndeterminedError if its block is not deep enough yet
 */
async function findRecentDeposit(chain: Chain, call: SettleCall): Promise<Payout | undefined> {
  const { number: toBlock } = await chain.head();
  const fromBlock = toBlock > recentBlocks ? toBlock - recentBlocks : 0n;
  const found = await findPayout(chain, { ...call, fromBlock, toBlock });
  if (found !== null && toBlock - found.blockNumber + 1n < BigInt(chain.network.confirmations))
    throw new UndeterminedError("Somebody else submitted the deposit just now; try again");
  return found ?? undefined;
}

/**
 * {@link Settling.findPayout}: the token logs the authorization that it used. Permit2 does not, so there the transaction
 * itself must contain the payer's signature.
 */
async function findPayout(
  { reader, readLogs }: ChainQueries,
  { payment, id: about, fromBlock, toBlock }: Search,
): Promise<Payout | null> {
  const { salt, voucher } = depositOf(payment);
  const uses = (receipt: Receipt) =>
    decodeEvents(receipt).some(
      (event) =>
        event.name === "AuthorizationUsed" &&
        sameAddress(event.token, payment.asset) &&
        sameAddress(event.payer, payment.payer) &&
        event.authorizationNonce === payment.nonce,
    );
  async function carriesSignature({ hash }: Receipt): Promise<boolean> {
    const [sent] = await reader.ask([{ ...transactionCall(hash), about }]);
    const input = reader.expect("a transaction", sent, (result) => {
      const { input: data } = membersOf(result);
      return typeof data === "string" ? data.toLowerCase() : undefined;
    });
    return input.includes(payment.signature.slice(2).toLowerCase());
  }
  const filter = { ...channelLogs("Deposited", voucher.channelId), about };
  for await (const logs of readLogs([filter], fromBlock, toBlock)) {
    for (const receipt of await readReceiptsAt(reader, logs)) {
      if (!isDeposited(channelEvents(receipt), payment)) continue;
      const isOfPayment = salt === undefined ? await carriesSignature(receipt) : uses(receipt);
      const { hash, blockNumber, blockHash } = receipt;
      if (isOfPayment) return { kind: "settled", hash, blockNumber, blockHash };
    }
  }
  return null;
}

function isDeposited(events: ReturnType<typeof channelEvents>, payment: SignedPayment): boolean {
  const { channelId } = depositOf(payment).voucher;
  return events.some(
    ({ name, key, amounts }) => name === "Deposited" && key === channelId && amounts[0] === payment.limit,
  );
}

const { explain, ...judging } = createDiagnosing({
  stateRefusals: depositStateRefusals,
  sourcesOf: (payment) => ({
    authorizationUsed: noncesOf(payment).use,
    ...tokenSources(payment),
    ...(isOfPermit2(payment) && approvalSources(payment)),
  }),
  needsContract: () => false,
  factsOf: () => ({}),
  explainRevert: (revert) => depositReverts(describeChannelRevert(revert)),
});

function createDepositSettling(method: string, nonceSpace: "token" | "permit2"): Settling {
  return {
    method,
    plan,
    ...settledAlone(depositTransaction),
    usual: usageOf(150_000n, { most: depositGas, bytes: 676 }),

    prove(receipt) {
      const events = channelEvents(receipt);
      return { find: ({ payment }) => (isDeposited(events, payment) ? { settled: true } : undefined) };
    },
    findPayout,

    async describeSettled(chain, { payment }, { blockNumber }) {
      const { channelId } = depositOf(payment).voucher;
      const block = await confirmedBlock(chain, blockNumber);
      const state = await readChannel({ reader: chain.reader, block }, channelId);
      return { amount: payment.limit, extra: { channelState: stateJson(channelId, state) } };
    },

    channels: {
      ownedBy: ownedChannels,
      withdrawals: withdrawalLogs,
      recordOf({ payment }, network) {
        const { payer, payTo: receiver, asset: token, limit: amount } = payment;
        const { channelId: id } = depositOf(payment).voucher;
        const isOwned = !ownedChannels(payment, network).isForAll;
        return {
          opened: { id, receiver, token, payer, isOwned },
          moves: [{ kind: "deposit", channel: id, amount }],
        };
      },
    },

    ...judging,
    async explain(chain, call, revert) {
      const { payment, id } = call;
      const before = deployment(payment);
      if (before === undefined) return explain(chain, call, revert);
      // Multicall3 does not pass on the reason.
      const { payer, asset } = payment;
      const from = multicall3Address;
      const alone = depositCall(payment);
      const options = { payer, asset, withFunds: false, before: { from, ...before }, id };
      const behind = await chain.simulate(alone, options);
      const own = behind.before === undefined ? behind.revert : await chain.simulateFrom(from, alone, id);
      return explain(chain, call, own ?? revert);
    },
    isUsed: createIsUsed(({ asset, ...payment }) => {
      const space = nonceSpace === "token" ? asset : permit2Address;
      return noncesOf({ ...payment, asset, nonceSpace: space }).use;
    }),

    ...unknownToTests,
  };
}

export const depositSettling = createDepositSettling(channelMethods.deposit, "token");
export const permit2DepositSettling: Settling = {
  ...createDepositSettling(channelMethods.permit2Deposit, "permit2"),
  async bringApproval(...given) {
    // Loaded lazily: the service never needs it.
    const { bringApproval } = await import("../../on-chain/bring-approval.ts");
    return bringApproval(...given);
  },
};
