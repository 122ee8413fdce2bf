import {
  type Chain,
  type Client,
  createTestClient,
  defineChain,
  type HttpTransport,
  http,
  type PublicActions,
  publicActions,
  type TestActions,
  type WalletActions,
  walletActions,
} from "viem";
import { builtInNetworks, type NetworkName } from "../../protocol/networks.ts";
import type { HarnessDescription } from "../control/description.ts";

/** A viem client for a local chain: public, wallet and test client in one. */
export type HarnessClient = Client<
  HttpTransport,
  Chain,
  undefined,
  undefined,
  { mode: "anvil" } & TestActions &
    PublicActions<HttpTransport, Chain, undefined> &
    WalletActions<Chain, undefined>
>;

/** Called before each request. If it throws, the client's call fails with that error. */
export type OnRequest = (request: { method: string; params?: unknown }) => void;

/** Makes msw pass the request through, whatever it does with other unhandled requests. */
const passthrough = "application/json, msw/passthrough";

/** viem's polling interval in milliseconds. Short, because local chains mine immediately. */
const pollingInterval = 20;

export function createViemClient(
  name: NetworkName,
  { chainId, rpcUrl, ...described }: NonNullable<HarnessDescription["networks"][string]>,
  onRequest: OnRequest,
): HarnessClient {
  const { tier, nativeCoin = "ETH" } = builtInNetworks.named(name) ?? described;
  const chain = defineChain({
    id: chainId,
    name: `${name} (local)`,
    nativeCurrency: {
      name: nativeCoin === "ETH" ? "Ether" : nativeCoin,
      symbol: nativeCoin,
      decimals: 18,
    },
    rpcUrls: { default: { http: [rpcUrl] } },
    testnet: tier === "testnet",
  });
  const overHttp = http(rpcUrl, { retryCount: 0, fetchOptions: { headers: { accept: passthrough } } });
  const transport: HttpTransport = (config) => {
    const { request, ...rest } = overHttp(config);
    return {
      ...rest,
      request(args) {
        onRequest(args);
        return request(args);
      },
    };
  };
  return createTestClient({ mode: "anvil", chain, transport, pollingInterval })
    .extend(publicActions)
    .extend(walletActions);
}
