import type { Chain, ChainQueries, Transaction } from "../../../chain/chain.ts";
import { type Receipt, readReceiptsAt, transactionCall } from "../../../chain/logs-and-receipts.ts";
import { balanceOf } from "../../../chain/views.ts";
import type { Invalid } from "../../../protocol/catalogue.ts";
import { sameAddress } from "../../../protocol/hex.ts";
import type { SignedPayment } from "../../../protocol/signed-payment.ts";
import { UndeterminedError } from "../../../util/errors.ts";
import { membersOf } from "../../../util/json.ts";
import { approvalOf, withoutApproval } from "../../approval.ts";
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
import { erc3009CollectorAddress, permit2CollectorAddress } from "../contracts.ts";
import { ownedChannels } from "../owners.ts";
import { channelMethods, depositOf } from "../payloads.ts";
import { depositReverts, depositStateRefusals, judgeDeposit } from "../vouchers.ts";
import { contractCall, describeChannelRevert, settledAlone, unknownToTests } from "./actions.ts";
import { sourceOf } from "./chain-source.ts";
import { encodeDeposit, encodeErc3009Data, encodePermit2Data } from "./channel-calls.ts";
import { channelEvents, channelLogs, withdrawalLogs } from "./channel-events.ts";
import { confirmedBlock, readChannel } from "./channel-state.ts";

/*
 * Deposits are payments: a signed authorization, used once. They bring tokens into a channel, whoever submits them, and `Deposited`
 * of that channel is what proves one.
 */

/** With the gas that a wallet's code may burn to check a signature, as for other payments; 150,000 are used. */
const depositGas = 450_000n;

/** The additional gas for an EIP-2612 approval that is submitted with a deposit, as for other payments by Permit2. */
const approvalGas = 80_000n;

/** Blocks in which a deposit is looked for that somebody else has submitted before it came to us. */
const recentBlocks = 2_000n;

function transactionOf({ payment }: SettleCall): Transaction {
  const { config, salt } = depositOf(payment);
  const { limit, nonce, window, signature } = payment;
  const known = salt === undefined ? approvalOf(payment) : undefined;
  const approval = known === "malformed" ? undefined : known;
  const data =
    salt === undefined
      ? encodePermit2Data({ nonce, deadline: window.last }, signature, approval)
      : encodeErc3009Data({ validAfter: window.first - 1n, validBefore: window.last + 1n, salt }, signature);
  const collector = salt === undefined ? permit2CollectorAddress : erc3009CollectorAddress;
  const call = encodeDeposit(config, { amount: limit, collector, data });
  return contractCall(call, depositGas + (approval === undefined ? 0n : approvalGas));
}

/** Plans a deposit; by Permit2, with the approval that came with it. */
async function plan(
  chain: Chain,
  asked: SettleCall,
  isUnderWay?: () => Promise<boolean>,
): Promise<Plan | Invalid> {
  const { payment, id, price = 0n } = asked;
  const judged = await judgeDeposit(sourceOf(chain, id), payment, price, async () => {
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
  });
  if ("reason" in judged) return judged;
  const { facts, extra } = judged;
  const { call, byApproval, settledBy } = facts;
  const transaction = transactionOf(call);
  // A deposit that was made needs no approval any more.
  return settledBy === undefined
    ? { call, transaction, ...byApproval, extra }
    : { call, transaction, settledBy, extra };
}

/**
 * The deposit of a payment that somebody else has submitted; undefined where the newest blocks have none.
 *
 * @throws UndeterminedError while its block is not deep enough
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
 * {@link Settling.findPayout}: the token names the authorization that it used; Permit2 does not, so that the transaction itself must
 * have the payer's signature in it.
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

const { stateOf, explain, explainFirst } = createDiagnosing({
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
    ...settledAlone(transactionOf),
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

    ownedBy: ownedChannels,
    channelMoves({ payment }, network) {
      const { payer, payTo: receiver, asset: token, limit: amount } = payment;
      const { channelId: id } = depositOf(payment).voucher;
      const isOwned = ownedChannels(payment, network) !== undefined;
      return {
        opened: { id, receiver, token, payer, isOwned },
        moves: [{ kind: "deposit", channel: id, amount }],
      };
    },

    stateOf,
    explain,
    explainFirst,
    isUsed: createIsUsed(({ asset, ...payment }) => {
      const space = nonceSpace === "token" ? asset : permit2Address;
      return noncesOf({ ...payment, asset, nonceSpace: space }).use;
    }),

    ...unknownToTests,
  };
}

export const depositSettling: Settling = {
  ...createDepositSettling(channelMethods.deposit, "token"),
  withdrawals: withdrawalLogs,
};
export const permit2DepositSettling: Settling = {
  ...createDepositSettling(channelMethods.permit2Deposit, "permit2"),
  async bringApproval(...given) {
    // The service never needs it.
    const { bringApproval } = await import("../../on-chain/bring-approval.ts");
    return bringApproval(...given);
  },
};
