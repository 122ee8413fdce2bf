import { expectAnswer, explainFailure } from "../../chain/deploy/endpoints.ts";
import { dataFeeCall, estimateFees, pricePerGas, readDataFee, readTip, tipCall } from "../../chain/fees.ts";
import { nativeBalanceCall, transactionCountCall } from "../../chain/rpc/calls.ts";
import type { RpcAnswer } from "../../chain/rpc/rpc.ts";
import type { Signer } from "../../chain/signing/local-signer.ts";
import type { NetworkConfig } from "../../config/serve-config.ts";
import { type Address, readQuantity } from "../../protocol/hex.ts";
import { formatCoins, formatCount, formatGwei, plural } from "../../protocol/token-units.ts";
import { self } from "../../util/self-command.ts";
import {
  type Accounts,
  type Check,
  type CheckContext,
  failed,
  type NetworkCheck,
  ok,
  warning,
} from "./check.ts";

const plurals = { settlement: "settlements", recovery: "recoveries" };

/** An operator that can pay for fewer settlements gets a warning. */
const usualGasHorizonPayments = 500n;

/** An account, and the kind of transactions that it pays for. */
type GasPayer = { account: Address; pays: "settlement" | "recovery" };

/** Checks the gas price, and how many settlements each operator, and recoveries the recoverer, can pay for. */
export const gasMoneyCheck: NetworkCheck = {
  name: "gas money",
  required: false,
  calls: (context) => [
    tipCall,
    dataFeeCall(context.ways.usual(context.network).settlement.bytes),
    ...gasPayersOf(context).map(({ account }) => nativeBalanceCall(account)),
  ],
  read([tip, dataFeeAnswer, ...balances], context) {
    const { network, head, ways } = context;
    const fees = estimateFees(head, network, readTip(tip, network));
    const dataFee = expectAnswer("the data fee", dataFeeAnswer, readDataFee);
    const usual = ways.usual(network);
    return [
      checkFee(network, head.baseFeePerGas),
      ...gasPayersOf(context).map((payer, index) => {
        const balance = expectAnswer("the balance of the account", balances[index], readQuantity);
        const { gas, gasLimit } = usual[payer.pays];
        const cost = gas * pricePerGas(head, fees) + dataFee;
        // The balance needed before the service signs a transaction and a node accepts it.
        const deposit = gasLimit * fees.maxFeePerGas + dataFee;
        return checkBalance(network, payer, { balance, cost, deposit });
      }),
    ];
  },
};

function gasPayersOf({ operators, recoverer }: Accounts): readonly GasPayer[] {
  const payers = operators.map((account): GasPayer => ({ account, pays: "settlement" }));
  return recoverer === undefined ? payers : [...payers, { account: recoverer, pays: "recovery" }];
}

/** Returns true if a check warns of an operator's gas money. */
export function warnsOfGasMoney({ name, status }: Check): boolean {
  return name === gasMoneyCheck.name && status === "warning";
}

/** All in wei: the account's balance, the expected cost of a transaction, and the maximum that its balance must cover. */
type GasMoney = { balance: bigint; cost: bigint; deposit: bigint };

function checkBalance(network: NetworkConfig, { account, pays }: GasPayer, money: GasMoney): Check {
  const { gasHorizonPayments = usualGasHorizonPayments } = network;
  const { balance, cost, deposit } = money;
  const has = `${formatCoins(balance, network)} of ${account}`;
  if (balance < deposit) {
    const detail = `${has} does not cover one ${pays}, which needs ${formatCoins(deposit, network)} at hand`;
    const advice = `Send it ${network.nativeCoin} on ${network.name}.`;
    return failed("gas money", detail, { advice, account });
  }
  const count = balance / (cost === 0n ? 1n : cost);
  const detail = `${has} buys ${formatCount(count)} ${plurals[pays]} at ${formatCoins(cost, network)} each`;
  // Recoveries are rare, so being able to pay for one is enough.
  return pays === "settlement" && count < gasHorizonPayments
    ? warning("gas money", detail, "Send it more soon.", { account })
    : ok("gas money", detail, { account });
}

function checkFee({ maxFeePerGas, name }: NetworkConfig, baseFeePerGas: bigint): Check {
  const detail = `the base fee is ${formatGwei(baseFeePerGas)}, the cap ${formatGwei(maxFeePerGas)}`;
  if (baseFeePerGas <= maxFeePerGas) return ok("fee", detail);
  const advice = `Raise the cap if that is worth it: MAX_FEE_GWEI=${name}=…`;
  return warning("fee", `${detail}: nothing is mined until it has come down`, advice);
}

/** Looks for transactions of the operators that the ledger does not know. */
export const txNoncesCheck: NetworkCheck = {
  name: "txNonce",
  required: true,
  calls: ({ operators }) =>
    operators.flatMap((operator) => [
      transactionCountCall(operator),
      transactionCountCall(operator, "pending"),
    ]),
  async read(answers, context) {
    const checks = context.operators.map((operator, index) =>
      checkTxNonce(answers.slice(2 * index, 2 * index + 2), operator, context),
    );
    return (await Promise.all(checks)).flat();
  },
};

/** The ledger is read after the chain, because transactions of other instances are in the ledger first. */
async function checkTxNonce(
  [minedAnswer, pendingAnswer]: readonly RpcAnswer[],
  operator: Address,
  { network, nextTxNonce, refusesUsedOperators = false }: CheckContext,
): Promise<readonly Check[]> {
  if (nextTxNonce === undefined) return [];
  const mined = Number(expectAnswer("the operator's txNonce", minedAnswer, readQuantity));
  const pending = Number(expectAnswer("the operator's pending txNonce", pendingAnswer, readQuantity));
  const next = await nextTxNonce(network.chainId, operator);
  const known = Math.max(mined, pending);
  // Some transactions are not in the ledger, so another party sends with the key. Two services on one key take each
  // other's txNonces.
  if (next === null && pending > mined) {
    return [
      failed("txNonce", `${operator} has transactions under way that this database does not know`, {
        advice:
          "Another service sends with this key. Stop it, or give this service an operator of its own; then wait until they are mined.",
        fatal: true,
      }),
    ];
  }
  if (next === null && mined > 0 && refusesUsedOperators) {
    const detail = `${operator} has sent ${plural(mined, "transaction")}, and this database knows none of them: payments may have been settled that it would refuse as used, and their buyers would pay again`;
    const advice = `Use the database that belongs to this key, or give this service an operator of its own: ${self} deploy --network ${network.name} --grant-operator ADDRESS. If no payment was settled with the key, or their database is lost for good: ${self} operator accept-tx-nonce --network ${network.name} --operator ${operator}`;
    return [failed("txNonce", detail, { advice, fatal: true })];
  }
  if (next !== null && next < known) {
    const detail = `the chain is at ${known} for ${operator}, and this database at ${next}: another service sends with this key, or the database is an old copy`;
    const advice = `One key belongs to one database. Stop the other service and use its database, or give this one an operator of its own: ${self} deploy --network ${network.name} --grant-operator ADDRESS. When no other service sends with it any more: ${self} operator accept-tx-nonce --network ${network.name} --operator ${operator}`;
    return [failed("txNonce", detail, { advice, fatal: true })];
  }
  if (next !== null && next > known) {
    const detail = `${operator} goes on at ${next}, but the node knows only its transactions below txNonce ${known}: ${next - known} are missing`;
    const advice = "serve sends them again. Where this stays so, see that it runs, and what its log says.";
    return [warning("txNonce", detail, advice)];
  }
  const detail =
    next === null
      ? `${operator} is new to this database, and begins at ${mined}`
      : `${operator} goes on at ${next}, the chain is at ${mined}`;
  return [ok("txNonce", detail)];
}

/**
 * Has a remote signer sign a transaction that can never be mined: its txNonce is out of reach, it offers no fee, and
 * the called contract accepts no coins.
 */
export async function checkSigner(signer: Signer, network: NetworkConfig): Promise<Check> {
  const startedAt = performance.now();
  try {
    await signer.signTransaction({
      chainId: network.chainId,
      nonce: Number.MAX_SAFE_INTEGER,
      to: network.facilitatorContract,
      data: "0x",
      gas: 21_000n,
      maxFeePerGas: 0n,
      maxPriorityFeePerGas: 0n,
    });
  } catch (error) {
    return failed("signer", explainFailure(error), {
      account: signer.address,
      advice: "Check OPERATOR_SIGNER_URL, OPERATOR_ADDRESS, and the keys of the remote signer.",
    });
  }
  const ms = Math.round(performance.now() - startedAt);
  return ok("signer", `signs for ${signer.address} in ${ms} ms`);
}

/** The name of this check, by which readiness finds its result. */
export const sponsorCheckName = "gifts";

/**
 * Checks that the sponsor can pay for a day's gifts. If it cannot, payers who lack gas for an approval must approve by
 * themselves; everything else works.
 */
export const sponsorCheck: NetworkCheck = {
  name: sponsorCheckName,
  required: false,
  calls: ({ network, sponsor }) =>
    sponsor === undefined || network.gifts === undefined ? [] : [nativeBalanceCall(sponsor)],
  read([answer], { network, sponsor: account }) {
    const { gifts } = network;
    if (answer === undefined || account === undefined || gifts === undefined) return [];
    const balance = expectAnswer("the balance of the sponsor", answer, readQuantity);
    const has = `${formatCoins(balance, network)} of the sponsor ${account}`;
    const { each, daily } = gifts;
    if (balance >= daily) {
      return [ok(sponsorCheckName, `${has} are a day's gifts, ${formatCoins(daily, network)}`, { account })];
    }
    // A gift costs gas in addition to its amount.
    const count = balance <= each ? 0n : balance / each;
    const detail =
      count === 0n
        ? `${has} do not cover one gift, up to ${formatCoins(each, network)} and its gas: payers without gas are told to approve Permit2 by themselves`
        : `${has} cover ${formatCount(count)} gifts of ${formatCoins(each, network)}, and not the ${formatCoins(daily, network)} that may be given in a day`;
    const { name, nativeCoin } = network;
    const advice = `Send it ${nativeCoin} on ${name}, or lower ${count === 0n ? "MAX_GIFT" : "DAILY_GIFTS"}=${name}=….`;
    return [warning(sponsorCheckName, detail, advice, { account })];
  },
};
