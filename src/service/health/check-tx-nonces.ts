import { expectAnswer } from "../../chain/deploy/expect-answer.ts";
import type { RpcAnswer } from "../../chain/rpc/rpc.ts";
import { findForeignTransactions } from "../../chain/tx-nonces.ts";
import { type Address, readQuantity } from "../../protocol/hex.ts";
import { type Check, type CheckContext, failed, type NetworkCheck, ok, warning } from "./check.ts";

/** Looks for transactions of the operators that the ledger does not know. */
export const txNoncesCheck: NetworkCheck = {
  name: "txNonce",
  required: true,
  calls: ({ operators }) =>
    operators.flatMap((operator) =>
      ["latest", "pending"].map((block) => ({
        method: "eth_getTransactionCount",
        params: [operator, block],
      })),
    ),
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
  { network, nextTxNonce }: CheckContext,
): Promise<readonly Check[]> {
  if (nextTxNonce === undefined) return [];
  const mined = Number(expectAnswer("the operator's txNonce", minedAnswer, readQuantity));
  const pending = Number(expectAnswer("the operator's pending txNonce", pendingAnswer, readQuantity));
  const next = await nextTxNonce(network.chainId, operator);
  const foreign = findForeignTransactions({ network: network.name, operator, mined, pending, next });
  if (foreign !== undefined) {
    const { problem, advice } = foreign;
    return [failed("txNonce", problem, { advice, fatal: true })];
  }
  const known = Math.max(mined, pending);
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
