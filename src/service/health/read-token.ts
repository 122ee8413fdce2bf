import { decodeParameters } from "../../chain/revert.ts";
import { createLocalRpc, type LocalCall, RpcRefusal } from "../../chain/rpc/local-rpc.ts";
import { domainSeparatorOf, selector } from "../../chain/views.ts";
import { domainSeparator } from "../../methods/eip712.ts";
import { type Address, type Hex, isBytes, isBytes32, quantity, readQuantity } from "../../protocol/hex.ts";
import type { Asset } from "../../protocol/networks.ts";
import { KitError } from "../../util/errors.ts";
import { membersOf } from "../../util/json.ts";

/** Facts about a chain and a token on it. */
export type ChainFacts = {
  chainId: number;
  token: Asset;
  /** The mean over the last hundred blocks. */
  blockTimeMs: number;
  /** In wei. */
  gasPrice: bigint;
};

/** The number of blocks for the mean block time. */
const span = 100n;

/**
 * Reads the values of a network file from a chain. The token's name and version are chosen to match its
 * `DOMAIN_SEPARATOR()`, over which payers sign; `version()` may differ.
 *
 * @param url never shown, since it may contain a key
 * @throws {KitError} when the node does not answer, or has no EIP-3009 token with such a domain
 */
export async function readChainFacts(url: string, address: Address): Promise<ChainFacts> {
  const rpc = createLocalRpc(url, 10_000);
  const ask = async (...call: LocalCall): Promise<unknown> => {
    try {
      return await rpc.request(...call);
    } catch (error) {
      if (error instanceof RpcRefusal) return undefined;
      throw new KitError("The node gives no answer", {
        hints: ["Check the RPC URL, and whether this machine may reach it."],
      });
    }
  };
  const view = (data: Hex) => ask("eth_call", { to: address, data }, "latest");
  const number = async (...call: LocalCall): Promise<bigint> => {
    const value = readQuantity(await ask(...call));
    if (value === undefined) throw new KitError(`The node gives no answer to ${call[0]} that is a number`);
    return value;
  };
  const [chainId, gasPrice, head] = await Promise.all([
    number("eth_chainId"),
    number("eth_gasPrice"),
    number("eth_blockNumber"),
  ]);
  const from = head > span ? head - span : 0n;
  const [first, last, separator, name, version, decimals, symbol] = await Promise.all([
    timeOf(await ask("eth_getBlockByNumber", quantity(from), false)),
    timeOf(await ask("eth_getBlockByNumber", quantity(head), false)),
    view(domainSeparatorOf(address).data),
    view(selector("name()")).then(readText),
    view(selector("version()")).then(readText),
    view(selector("decimals()")).then(readQuantity),
    view(selector("symbol()")).then(readText),
  ]);
  if (!isBytes32(separator) || name === undefined || decimals === undefined) {
    throw new KitError(`There is no EIP-3009 token at ${address} on chain ${chainId}`, {
      hints: ["It must have name(), decimals() and DOMAIN_SEPARATOR()."],
    });
  }
  const versions = [...(version === undefined ? [] : [version]), "2", "1"];
  const found = versions.find(
    (one) => domainSeparator({ name, version: one, address }, Number(chainId)) === separator,
  );
  if (found === undefined) {
    throw new KitError(
      `The token ${address} signs for a domain that is not its name() "${name}" with a version of ${versions.join(", ")}`,
      {
        hints: [
          "Write the network file by hand, with the name and version of its EIP-712 domain; `x402-kit doctor` checks them.",
        ],
      },
    );
  }
  const blocks = Number(head - from);
  const blockTimeMs =
    blocks === 0 ? 2_000 : Math.max(50, Math.round((Number(last - first) * 1_000) / blocks));
  return {
    chainId: Number(chainId),
    token: {
      address,
      name,
      version: found,
      decimals: Number(decimals),
      ...(symbol !== undefined && { symbol }),
    },
    blockTimeMs,
    gasPrice,
  };
}

function timeOf(block: unknown): bigint {
  const time = readQuantity(membersOf(block).timestamp);
  if (time === undefined) throw new KitError("The node gives no block with a time");
  return time;
}

/** Decodes an ABI-encoded string; undefined if it is not one, is empty, or is longer than 64 characters. */
function readText(data: unknown): string | undefined {
  const [text] = (isBytes(data) && decodeParameters(["string"], data)) || [];
  return typeof text === "string" && text !== "" && text.length <= 64 ? text : undefined;
}
