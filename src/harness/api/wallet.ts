import { hashMessage, hashTypedData, isHex } from "viem";
import { z } from "zod";
import { createLocalRpc, RpcRefusal } from "../../chain/rpc/local-rpc.ts";
import { isTestPayer, noPayer, signerAs } from "../../payer/sign-as.ts";
import type { TestPayerName } from "../../payer/test-payers.ts";
import { type Address, type Hex, isAddress, quantity, sameAddress } from "../../protocol/hex.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import { type HarnessDescription, requireRunning } from "../control/description.ts";

/** The options of a wallet. */
export type WalletOptions<N extends NetworkName = NetworkName> = {
  /** The account: a test payer, whose key is published; `funded` by default. */
  payer?: TestPayerName;
  /** The initial chain; the first chain of the harness by default. */
  network?: N;
};

/** The reply to a page: a result or an EIP-1193 error, and the wallet's current chain. */
export type WalletReply = { chainId: Hex } & (
  | { result: unknown }
  | { error: { code: number; message: string } }
);

/** A wallet for a page in a test browser. The key stays in this process. */
export type BrowserWallet = {
  readonly address: Address;
  /** The name of the page's global function that calls {@link request}: `page.exposeFunction(binding, request)`. */
  readonly binding: string;
  /**
   * Must run before the page's own scripts: `page.addInitScript(script)`. Creates an EIP-1193 provider, announces it by
   * EIP-6963, and sets `window.ethereum` if the page has none.
   */
  readonly script: string;
  /** Answers a request of the page: signs, switches between the local chains, and passes all others to the node. */
  request(request: unknown): Promise<WalletReply>;
};

/** Error codes of EIP-1193, EIP-3085 and JSON-RPC. */
const codes = { unauthorized: 4100, unknownChain: 4902, invalidParams: -32602, internal: -32603 } as const;

class WalletError extends Error {
  readonly code: number;
  constructor(code: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

const requestSchema = z.object({ method: z.string(), params: z.unknown().optional() });
const textPair = z.tuple([z.string(), z.string()]).rest(z.unknown());
const chainParams = z.tuple([z.object({ chainId: z.string() })]).rest(z.unknown());
const typedDataParams = z.tuple([z.string(), z.union([z.string(), z.looseObject({})])]).rest(z.unknown());
const typedData = z.object({
  domain: z.looseObject({ chainId: z.coerce.bigint().optional() }),
  types: z.record(z.string(), z.array(z.object({ name: z.string(), type: z.string() }))),
  primaryType: z.string(),
  message: z.record(z.string(), z.unknown()),
});

/**
 * Creates a test payer's wallet for the local chains of a harness.
 *
 * @throws {KitError} if the payer does not exist or the network does not run
 */
export function createWallet(
  description: HarnessDescription,
  { payer = "funded", network }: WalletOptions & { network: NetworkName },
  requireOpen: () => void,
): BrowserWallet {
  if (!isTestPayer(payer)) throw noPayer();
  const signer = signerAs(payer);
  const { address } = signer;
  let chain = requireRunning(description, network);

  function requireOwn(account: string): void {
    if (isAddress(account) && sameAddress(account, address)) return;
    throw new WalletError(codes.unauthorized, `The wallet has ${address} alone, and not ${account}`);
  }

  async function answer(request: unknown): Promise<unknown> {
    requireOpen();
    const { method, params = [] } = requestSchema.parse(request);
    switch (method) {
      case "eth_requestAccounts":
      case "eth_accounts":
        return [address];
      case "eth_chainId":
        return quantity(BigInt(chain.chainId));
      case "eth_signTypedData_v4": {
        const [account, data] = typedDataParams.parse(params);
        requireOwn(account);
        const typed = typedData.parse(typeof data === "string" ? JSON.parse(data) : data);
        const { chainId } = typed.domain;
        if (chainId !== undefined && chainId !== BigInt(chain.chainId)) {
          throw new WalletError(
            codes.invalidParams,
            `The domain is for chain ${chainId}, and the wallet is on ${chain.chainId}: switch it first`,
          );
        }
        return signer.signDigest(hashTypedData(typed));
      }
      case "personal_sign": {
        const [text, account] = textPair.parse(params);
        requireOwn(account);
        return signer.signDigest(hashMessage(isHex(text) ? { raw: text } : text));
      }
      case "wallet_switchEthereumChain": {
        const [{ chainId }] = chainParams.parse(params);
        const running = Object.values(description.networks);
        const found = running.find((one) => one !== undefined && one.chainId === Number(chainId));
        if (found === undefined) {
          const ids = running.map((one) => one?.chainId).join(", ");
          const message = `Chain ${Number(chainId)} does not run here: there are ${ids}`;
          throw new WalletError(codes.unknownChain, message);
        }
        chain = found;
        return null;
      }
      default:
        return createLocalRpc(chain.rpcUrl).request(method, ...(Array.isArray(params) ? params : [params]));
    }
  }

  const binding = `x402KitWallet_${payer}`;
  return {
    address,
    binding,
    script: pageScript(binding, payer, quantity(BigInt(chain.chainId))),
    async request(request) {
      try {
        const result = await answer(request);
        return { result, chainId: quantity(BigInt(chain.chainId)) };
      } catch (error) {
        return { error: describe(error), chainId: quantity(BigInt(chain.chainId)) };
      }
    },
  };
}

function describe(error: unknown): { code: number; message: string } {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof WalletError) return { code: error.code, message };
  if (error instanceof RpcRefusal) return { code: error.rpcCode ?? codes.internal, message };
  const isMalformed = error instanceof z.ZodError || error instanceof SyntaxError;
  return { code: isMalformed ? codes.invalidParams : codes.internal, message };
}

const icon = "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'/>";

/** Returns the script of the page's provider. It has no key: every request goes to the test's process. */
function pageScript(binding: string, payer: string, chainId: Hex): string {
  const uuid = crypto.randomUUID();
  const info = { uuid, name: `x402-kit test wallet: ${payer}`, icon, rdns: "dev.x402-kit.test-wallet" };
  return `(() => {
  const listeners = new Map();
  let chainId = ${JSON.stringify(chainId)};
  const provider = {
    async request(request) {
      const reply = await window[${JSON.stringify(binding)}](request);
      if (reply.chainId !== chainId) {
        chainId = reply.chainId;
        for (const listener of listeners.get("chainChanged") ?? []) listener(chainId);
      }
      if (reply.error) throw Object.assign(new Error(reply.error.message), { code: reply.error.code });
      return reply.result;
    },
    on(event, listener) {
      listeners.set(event, [...(listeners.get(event) ?? []), listener]);
      return provider;
    },
    removeListener(event, listener) {
      listeners.set(event, (listeners.get(event) ?? []).filter((one) => one !== listener));
      return provider;
    },
  };
  const detail = Object.freeze({ info: Object.freeze(${JSON.stringify(info)}), provider });
  const announce = () => window.dispatchEvent(new CustomEvent("eip6963:announceProvider", { detail }));
  window.addEventListener("eip6963:requestProvider", announce);
  window.ethereum ??= provider;
  announce();
})();`;
}
