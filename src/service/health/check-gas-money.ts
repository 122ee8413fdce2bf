import { dataFeeCall, readDataFee } from "../../chain/data-fee.ts";
import { expectAnswer } from "../../chain/deploy/expect-answer.ts";
import { formatCoins, formatCount, formatGwei } from "../../chain/deploy/units.ts";
import { estimateFees, pricePerGas, readTip, tipCall } from "../../chain/fees.ts";
import type { NetworkConfig } from "../../config/network-config.ts";
import {
  exactEip3009Recovery as recovery,
  exactEip3009Settling as settling,
} from "../../methods/exact-eip3009/on-chain/settling.ts";
import type { SettleCall } from "../../methods/on-chain/settling.ts";
import { type Address, readQuantity } from "../../protocol/hex.ts";
import { type Accounts, type Check, failed, type NetworkCheck, ok, warning } from "./check.ts";

const plurals = { settlement: "settlements", recovery: "recoveries" };

/** An operator that can pay for fewer settlements gets a warning. */
const usualGasHorizonPayments = 500n;

/** An account, and the transactions that it pays for. */
type GasPayer = { account: Address; pays: "settlement" | "recovery" };

/** Checks the price of gas, and how many settlements each operator, and recoveries the recoverer, can pay for. */
export const gasMoneyCheck: NetworkCheck = {
  name: "gas money",
  required: false,
  calls: (context) => [
    tipCall,
    dataFeeCall(settling.usual.bytes),
    ...gasPayersOf(context).map(({ account }) => ({ method: "eth_getBalance", params: [account, "latest"] })),
  ],
  read([tip, dataFeeAnswer, ...balances], context) {
    const { network, head } = context;
    const fees = estimateFees(head, network, readTip(tip, network));
    const dataFee = expectAnswer("the data fee", dataFeeAnswer, readDataFee);
    const sample = samplePayment(network);
    const usualGas = { settlement: settling.usual.gas, recovery: recovery.usualGas };
    // The gas limits that the balance must cover before the service signs and a node accepts a transaction.
    const gas = {
      settlement: settling.transaction([sample], network).gas,
      recovery: recovery.transaction(sample, network).gas,
    };
    return [
      checkFee(network, head.baseFeePerGas),
      ...gasPayersOf(context).map((payer, index) => {
        const balance = expectAnswer("the balance of the account", balances[index], readQuantity);
        const cost = usualGas[payer.pays] * pricePerGas(head, fees) + dataFee;
        const deposit = gas[payer.pays] * fees.maxFeePerGas + dataFee;
        return checkBalance(network, payer, { balance, cost, deposit });
      }),
    ];
  },
};

function gasPayersOf({ operators, recoverer }: Accounts): readonly GasPayer[] {
  const payers = operators.map((account): GasPayer => ({ account, pays: "settlement" }));
  return recoverer === undefined ? payers : [...payers, { account: recoverer, pays: "recovery" }];
}

/** Whether a check warns of an operator's gas money. */
export function warnsOfGasMoney({ name, status }: Check): boolean {
  return name === gasMoneyCheck.name && status === "warning";
}

/**
 * All in wei: the account's balance, the expected cost of a transaction, and the maximum that its balance must cover.
 */
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

/** A payment of a plain account, for the size and the gas limit of its transactions. */
function samplePayment({ usdc, facilitatorContract }: NetworkConfig): SettleCall {
  // None is zero, as is usual in a payment: zeros would cost less gas.
  const nonZeroBytes = `0x${"a5".repeat(32)}` as const;
  return {
    payment: {
      method: settling.method,
      payer: facilitatorContract,
      payTo: facilitatorContract,
      asset: usdc.address,
      limit: 1_000_000n,
      window: { first: 1n, last: 2_000_000_000n },
      nonce: nonZeroBytes,
      nonceSpace: usdc.address,
      signature: `${nonZeroBytes}${nonZeroBytes.slice(2)}1b`,
      payload: null,
    },
    recipient: facilitatorContract,
  };
}
