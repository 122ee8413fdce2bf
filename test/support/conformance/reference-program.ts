/**
 * The public reference facilitator (`@x402/core`, `@x402/evm`) behind plain HTTP, in its own process, for `npm run
 * bench:peers` and the tests of `x402-kit conformance`. Its settings and routes follow its documentation: one viem
 * client, one key, all schemes, both protocol versions at the root (and below `/v1`, for the benchmark).
 *
 * node reference-program.ts RPC_URL CHAIN_ID PRIVATE_KEY [approvals]
 *
 * approvals: also sends the approvals that payers have signed as transactions.
 */
import { createServer } from "node:http";
import { x402Facilitator } from "@x402/core/facilitator";
import type { Network } from "@x402/core/types";
import { toFacilitatorEvmSigner } from "@x402/evm";
import { BatchSettlementEvmScheme } from "@x402/evm/batch-settlement/facilitator";
import { ExactEvmScheme } from "@x402/evm/exact/facilitator";
import { ExactEvmSchemeV1 } from "@x402/evm/exact/v1/facilitator";
import { UptoEvmScheme } from "@x402/evm/upto/facilitator";
import { createErc20ApprovalGasSponsoringExtension } from "@x402/extensions";
import { createWalletClient, defineChain, http, publicActions } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { builtInNetworks } from "../../../src/protocol/networks.ts";

const [rpcUrl = "", chainId = "", privateKey = "", approvals] = process.argv.slice(2);
const chain = defineChain({
  id: Number(chainId),
  name: "local",
  nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
  rpcUrls: { default: { http: [rpcUrl] } },
});
const account = privateKeyToAccount(`0x${privateKey.replace(/^0x/, "")}`);
// Polls as often as a local chain mines; viem's default of four seconds would only measure waiting.
const client = createWalletClient({ account, chain, transport: http(rpcUrl), pollingInterval: 20 }).extend(
  publicActions,
);
const signer = toFacilitatorEvmSigner({
  address: account.address,
  readContract: (args) => client.readContract({ ...args, args: args.args ?? [] }),
  verifyTypedData: (args) => client.verifyTypedData(args as Parameters<typeof client.verifyTypedData>[0]),
  writeContract: (args) => client.writeContract({ ...args, args: args.args ?? [] }),
  sendTransaction: (args) => client.sendTransaction(args),
  waitForTransactionReceipt: (args) => client.waitForTransactionReceipt(args),
  getCode: (args) => client.getCode(args),
});
const facilitator = new x402Facilitator()
  .register(`eip155:${chain.id}`, new ExactEvmScheme(signer))
  .register(`eip155:${chain.id}`, new UptoEvmScheme(signer))
  .register(`eip155:${chain.id}`, new BatchSettlementEvmScheme(signer, account));
if (approvals !== undefined) {
  const send = async (transaction: `0x${string}` | { to: `0x${string}`; data: `0x${string}` }) => {
    const hash =
      typeof transaction === "string"
        ? await client.sendRawTransaction({ serializedTransaction: transaction })
        : await client.sendTransaction(transaction);
    await client.waitForTransactionReceipt({ hash });
    return hash;
  };
  facilitator.registerExtension(
    createErc20ApprovalGasSponsoringExtension({
      ...signer,
      async sendTransactions(transactions) {
        const hashes: `0x${string}`[] = [];
        for (const transaction of transactions) hashes.push(await send(transaction));
        return hashes;
      },
    }),
  );
}
/** Its packages for version 1 know networks only by these names. */
const namesOfV1 = ["base", "base-sepolia", "polygon"];
const known = builtInNetworks.ofChain(chain.id);
if (known !== undefined && namesOfV1.includes(known.name))
  facilitator.registerV1(known.name as Network, new ExactEvmSchemeV1(signer));

const server = createServer((request, response) => {
  let text = "";
  request.setEncoding("utf8");
  request.on("data", (chunk: string) => {
    text += chunk;
  });
  const send = (status: number, body: unknown) => {
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  };
  request.on("end", async () => {
    try {
      send(200, await answer(request.url ?? "", text));
    } catch (error) {
      send(500, { error: String(error).slice(0, 200) });
    }
  });
});

async function answer(url: string, text: string): Promise<unknown> {
  if (url === "/supported") return facilitator.getSupported();
  const { paymentPayload, paymentRequirements } = JSON.parse(text);
  if (url.endsWith("/settle")) return facilitator.settle(paymentPayload, paymentRequirements);
  return facilitator.verify(paymentPayload, paymentRequirements);
}

server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  if (address !== null && typeof address === "object") console.log(`http://127.0.0.1:${address.port}/v1`);
});
