import type { Chain } from "../chain/chain.ts";
import { findForeignTransactions } from "../chain/tx-nonces.ts";
import type { ConfigurationProblem } from "../errors.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { domainSeparator } from "../protocol/authorization.ts";
import type { Address } from "../protocol/hex.ts";

/**
 * What keeps a network from being served: it is not what the configuration says (chain id, contract, the domain of an
 * asset), or somebody else sends with an operator's key.
 *
 * @throws UndeterminedError when the chain cannot be asked
 */
export async function compareNetwork(
  chain: Chain,
  ledger: Pick<Ledger, "nextTxNonce">,
  operators: readonly Address[],
): Promise<readonly ConfigurationProblem[]> {
  const [different, foreign] = await Promise.all([
    compareWithConfiguration(chain),
    Promise.all(operators.map((operator) => compareTxNonces(chain, ledger, operator))),
  ]);
  return [...different, ...foreign.flat()].map((problem) => ({ name: chain.network.name, problem }));
}

async function compareWithConfiguration(chain: Chain): Promise<string[]> {
  const { network } = chain;
  const { chainId, contractCode, domainSeparators } = await chain.inspect();
  if (chainId !== network.chainId) {
    return [`the RPC serves chain ${chainId}, but ${network.name} is chain ${network.chainId}`];
  }
  const problems =
    contractCode === "0x" ? [`there is no facilitator contract at ${network.facilitatorContract}`] : [];
  for (const asset of network.assets) {
    const computed = domainSeparator(asset, network.chainId);
    const onChain = domainSeparators.get(asset.address);
    if (onChain?.toLowerCase() === computed) continue;
    problems.push(
      onChain === undefined
        ? `there is no EIP-3009 token at ${asset.address}`
        : `the token ${asset.address} signs for another domain than name "${asset.name}", version "${asset.version}"`,
    );
  }
  return problems;
}

async function compareTxNonces(
  chain: Chain,
  ledger: Pick<Ledger, "nextTxNonce">,
  operator: Address,
): Promise<string[]> {
  const { name, chainId } = chain.network;
  const [mined, pending] = await Promise.all([
    chain.transactionCount(operator),
    chain.pendingTransactionCount(operator),
  ]);
  const next = await ledger.nextTxNonce(chainId, operator);
  const foreign = findForeignTransactions({ network: name, operator, mined, pending, next });
  return foreign === undefined ? [] : [`${foreign.problem}. ${foreign.advice}`];
}
