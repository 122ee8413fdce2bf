import { forwardGas, settleTransaction, usualSettleGas } from "../chain/signing/transaction.ts";
import type { NetworkConfig } from "../config/network-config.ts";
import { networkDefaults } from "../config/network-defaults.ts";
import { fetchDataFee, priceAt } from "../deploy/price.ts";
import { readBalance } from "../deploy/transaction.ts";
import { formatCoins, formatCount, formatGwei } from "../deploy/units.ts";
import type { Address } from "../protocol/hex.ts";
import type { Head } from "../rpc/calls.ts";
import type { Rpc } from "../rpc/rpc.ts";
import type { Check } from "./check.ts";

const plurals = { settlement: "settlements", recovery: "recoveries" };

/** Fewer than this, and somebody should send some. */
const fewSettles = 500n;

/** Who has to pay for what; `deposit` is what must be at hand for one, in wei. */
type Payer = { account: Address; pays: "settlement" | "recovery"; deposit: bigint };

/** Looks at what gas costs, and at how many settlements each operator and recoveries the recoverer can pay for. */
export async function checkGasMoney(
  rpc: Pick<Rpc, "ask">,
  network: NetworkConfig,
  head: Head,
  { operators, recoverer }: { operators: readonly Address[]; recoverer: Address | undefined },
): Promise<readonly Check[]> {
  const sample = sampleTransaction(network);
  const price = priceAt(head, network);
  const dataFee = await fetchDataFee(rpc, sample.data.length / 2);
  const cost = usualSettleGas * price.perGas + dataFee;
  // What a node wants to see before it takes a transaction at all, and the service before it signs one.
  const depositOf = (gas: bigint) => gas * price.fees.maxFeePerGas + dataFee;

  const checkBalance = async ({ account, pays, deposit }: Payer): Promise<Check> => {
    const balance = await readBalance(rpc, account);
    const count = balance / (cost === 0n ? 1n : cost);
    const has = `${formatCoins(balance, network.name)} of ${account} `;
    if (balance < deposit) {
      return {
        name: "gas money",
        status: "failed",
        detail: `${has}does not cover one ${pays}, which needs ${formatCoins(deposit, network.name)} at hand`,
        advice: `Send it ${networkDefaults[network.name].nativeCoin} on ${network.name}.`,
      };
    }
    const detail = `${has}buys ${formatCount(count)} ${plurals[pays]} at ${formatCoins(cost, network.name)} each`;
    // Recoveries are rare: who can pay for one can pay for the next ones too.
    return pays === "settlement" && count < fewSettles
      ? { name: "gas money", status: "warning", detail, advice: "Send it more soon." }
      : { name: "gas money", status: "ok", detail };
  };
  const payers = operators.map(
    (account): Payer => ({ account, pays: "settlement", deposit: depositOf(sample.gas) }),
  );
  if (recoverer !== undefined) {
    payers.push({ account: recoverer, pays: "recovery", deposit: depositOf(forwardGas) });
  }
  return [checkFee(network, head.baseFeePerGas), ...(await Promise.all(payers.map(checkBalance)))];
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
