import { rpcVariableOf } from "../../config/variables.ts";
import { create2Deployer, create2DeployerCode, missingDeployerHints } from "../../protocol/create2.ts";
import { readQuantity } from "../../protocol/hex.ts";
import type { Network } from "../../protocol/networks.ts";
import { KitError } from "../../util/errors.ts";
import type { Rpc } from "../rpc/rpc.ts";
import { expectAnswer } from "./expect-answer.ts";

/**
 * Makes sure that an RPC serves a network, before anything is sent to it.
 *
 * @throws KitError when it serves another
 */
export async function requireNetwork(rpc: Pick<Rpc, "ask">, { name, chainId }: Network): Promise<void> {
  const [answer] = await rpc.ask([{ method: "eth_chainId", params: [] }]);
  const served = expectAnswer("the chain id", answer, readQuantity);
  if (served !== BigInt(chainId)) {
    throw new KitError(`The RPC serves chain ${served}, but ${name} is chain ${chainId}`, {
      hints: [`Correct ${rpcVariableOf(name)}.`],
    });
  }
}

/**
 * Makes sure that the CREATE2 deployer is what it should be.
 *
 * @throws KitError that says how it gets there
 */
export async function requireCreate2Deployer(rpc: Pick<Rpc, "ask">, { name }: Network): Promise<void> {
  const [answer] = await rpc.ask([{ method: "eth_getCode", params: [create2Deployer, "latest"] }]);
  const code = expectAnswer("the code of the CREATE2 deployer", answer, (result) =>
    typeof result === "string" ? result : undefined,
  );
  if (code.toLowerCase() !== create2DeployerCode) {
    throw new KitError(`${name} cannot be deployed to`, { hints: missingDeployerHints });
  }
}
