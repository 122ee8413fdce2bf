import type { Head } from "../chain/chain.ts";
import type { Rpc } from "../chain/rpc.ts";
import { settleTransaction, usualSettleGas } from "../chain/transaction.ts";
import type { NetworkConfig } from "../config/network-config.ts";
import { networkDefaults } from "../config/network-defaults.ts";
import type { Address } from "../protocol/hex.ts";
import type { Check } from "./check.ts";
import { priceAt, readDataFee } from "./price.ts";
import { readBalance } from "./transaction.ts";
import { formatCoins, formatCount, formatGwei } from "./units.ts";

/** Fewer than this, and somebody should send some. */
const fewSettles = 500n;

/** Looks at what gas costs, and at how many settlements each operator can pay for. */
export async function checkGasMoney(
  rpc: Pick<Rpc, "ask">,
  network: NetworkConfig,
  head: Head,
  operators: readonly Address[],
): Promise<readonly Check[]> {
  const sample = sampleTransaction(network);
  const price = priceAt(head, network);
  const dataFee = await readDataFee(rpc, sample.data.length / 2);
  const cost = usualSettleGas * price.perGas + dataFee;
  // What a node wants to see before it takes a transaction at all, and the service before it signs one.
  const deposit = sample.gas * price.fees.maxFeePerGas + dataFee;

  const checkBalance = async (operator: Address): Promise<Check> => {
    const balance = await readBalance(rpc, operator);
    const settles = balance / (cost === 0n ? 1n : cost);
    const has = `${formatCoins(balance, network.name)} of ${operator} `;
    if (balance < deposit) {
      return {
        name: "gas money",
        status: "failed",
        detail: `${has}does not cover one settlement, which needs ${formatCoins(deposit, network.name)} at hand`,
        advice: `Send it ${networkDefaults[network.name].nativeCoin} on ${network.name}.`,
      };
    }
    const detail = `${has}buys ${formatCount(settles)} settlements at ${formatCoins(cost, network.name)} each`;
    return settles < fewSettles
      ? { name: "gas money", status: "warning", detail, advice: "Send it more soon." }
      : { name: "gas money", status: "ok", detail };
  };
  return [checkFee(network, head.baseFeePerGas), ...(await Promise.all(operators.map(checkBalance)))];
}

function checkFee({ maxFeePerGas, name }: NetworkConfig, baseFeePerGas: bigint): Check {
  const detail = `the base fee is ${formatGwei(baseFeePerGas)}, the cap ${formatGwei(maxFeePerGas)}`;
  if (baseFeePerGas <= maxFeePerGas) return { name: "fee", status: "ok", detail };
  return {
    name: "fee",
    status: "warning",
    detail: `${detail}: nothing is mined until it has come down`,
    advice: `Raise the cap if that is worth it: MAX_FEE_GWEI=${name}=…`,
  };
}

/** A transaction that settles one payment of a plain account, for its size and its gas limit. */
function sampleTransaction({ usdc, facilitatorContract }: NetworkConfig) {
  const any = `0x${"a5".repeat(32)}` as const;
  return settleTransaction([
    {
      asset: usdc.address,
      authorization: {
        from: facilitatorContract,
        to: facilitatorContract,
        value: 1_000_000n,
        validAfter: 0n,
        validBefore: 2_000_000_000n,
        nonce: any,
      },
      signature: `${any}${any.slice(2)}1b`,
      recipient: facilitatorContract,
    },
  ]);
}
