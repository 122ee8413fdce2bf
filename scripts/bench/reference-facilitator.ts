/**
 * The public reference facilitator (`@x402/core`, `@x402/evm`) behind plain HTTP, in a process of its own, for
 * {@link file://./peers.ts}. Its settings are those of its documentation: one viem client, one key.
 *
 * node reference-facilitator.ts RPC_URL CHAIN_ID PRIVATE_KEY
 */
import { createServer } from "node:http";
import { x402Facilitator } from "@x402/core/facilitator";
import { toFacilitatorEvmSigner } from "@x402/evm";
import { ExactEvmScheme } from "@x402/evm/exact/facilitator";
import { createWalletClient, defineChain, http, publicActions } from "viem";
import { privateKeyToAccount } from "viem/accounts";

const [rpcUrl = "", chainId = "", privateKey = ""] = process.argv.slice(2);
const chain = defineChain({
  id: Number(chainId),
  name: "local",
  nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
  rpcUrls: { default: { http: [rpcUrl] } },
});
const account = privateKeyToAccount(`0x${privateKey.replace(/^0x/, "")}`);
// The receipt is asked for as often as a local chain mines; viem's default of four seconds would measure waiting.
const client = createWalletClient({ account, chain, transport: http(rpcUrl), pollingInterval: 20 }).extend(
  publicActions,
);
const facilitator = new x402Facilitator().register(
  `eip155:${chain.id}`,
  new ExactEvmScheme(
    toFacilitatorEvmSigner({
      address: account.address,
      readContract: (args) => client.readContract({ ...args, args: args.args ?? [] }),
      verifyTypedData: (args) => client.verifyTypedData(args as Parameters<typeof client.verifyTypedData>[0]),
      writeContract: (args) => client.writeContract({ ...args, args: args.args ?? [] }),
      sendTransaction: (args) => client.sendTransaction(args),
      waitForTransactionReceipt: (args) => client.waitForTransactionReceipt(args),
      getCode: (args) => client.getCode(args),
    }),
  ),
);

const server = createServer((request, response) => {
  let text = "";
  request.setEncoding("utf8");
  request.on("data", (chunk: string) => {
    text += chunk;
  });
  request.on("end", async () => {
    const { paymentPayload, paymentRequirements } = JSON.parse(text);
    const answering: Promise<unknown> =
      request.url === "/v1/settle"
        ? facilitator.settle(paymentPayload, paymentRequirements)
        : facilitator.verify(paymentPayload, paymentRequirements);
    const answer = await answering.catch((error: unknown) => ({ error: String(error).slice(0, 200) }));
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(answer));
  });
});
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  if (address !== null && typeof address === "object") console.log(`http://127.0.0.1:${address.port}/v1`);
});
