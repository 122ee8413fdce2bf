import { toClientEvmSigner } from "@x402/evm";
import { BatchSettlementEvmScheme } from "@x402/evm/batch-settlement/client";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { createPublicClient, http } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { createLocalRpc } from "../../../src/chain/rpc/local-rpc.ts";
import { recoverSigner } from "../../../src/chain/signing/recover-signer.ts";
import { createChannelBuyer } from "../../../src/methods/batch-settlement/channel-buyer.ts";
import { writePayload } from "../../../src/methods/build-request.ts";
import { findChallenge, readOffers } from "../../../src/payer/read-offer.ts";
import { createPayerSigner } from "../../../src/payer/sign-as.ts";
import { headerOf } from "../../../src/payer/sign-payment.ts";
import { builtInNetworks } from "../../../src/protocol/networks.ts";
import { decodeHeader } from "../../../src/protocol/payment-headers.ts";

/*
 * Buyers for `judge client` that keep channels. The first argument selects the public packages' buyer (public), the
 * kit's own (kit), or a public one that buys once however often it should (once).
 */

const manner = process.argv[2] ?? "public";
const { X402_URL = "", X402_PRIVATE_KEY = "", X402_RPC_URL = "", X402_MAX_AMOUNT = "0" } = process.env;
const { X402_CAIP2 = "", X402_ASSET = "", X402_PURCHASES = "1" } = process.env;
const privateKey = `0x${X402_PRIVATE_KEY.slice(2)}` as const;

const buy = manner === "kit" ? kitBuyer() : publicBuyer();
for (let purchase = 1; purchase <= (manner === "once" ? 1 : Number(X402_PURCHASES)); purchase++) {
  const answer = await buy();
  if (!answer.ok) throw new Error(`answered ${answer.status}`);
  console.log(await answer.text());
}

function publicBuyer(): () => Promise<Response> {
  const network = X402_CAIP2 as `eip155:${number}`;
  const client = createPublicClient({ transport: http(X402_RPC_URL) });
  const signer = toClientEvmSigner(privateKeyToAccount(privateKey), client);
  const buyer = new x402Client().register(network, new BatchSettlementEvmScheme(signer));
  buyer.setSpendControls({ allowedAssets: [{ network, asset: X402_ASSET }] });
  const pay = wrapFetchWithPayment(fetch, buyer);
  return () => pay(X402_URL);
}

function kitBuyer(): () => Promise<Response> {
  const rpc = createLocalRpc(X402_RPC_URL);
  const buyer = createChannelBuyer(createPayerSigner(privateKey), {
    call: (_chainId, to, data) => rpc.request("eth_call", { to, data }, "latest"),
    recover: recoverSigner,
  });
  const networks = builtInNetworks.all.map((network) => ({ ...network, asset: network.usdc }));
  const decode = ({ headers }: Response, name: string) => decodeHeader(headers.get(name) ?? "");
  return async () => {
    const challenge = findChallenge((await fetch(X402_URL)).headers.get("PAYMENT-REQUIRED") ?? "");
    const [offer] = challenge === undefined ? [] : readOffers(challenge, networks);
    if (offer === undefined) throw new Error("nothing that can be paid");
    const { network, method: transfer, written, validForSeconds } = offer;
    const until = BigInt(Math.floor(Date.now() / 1_000) + validForSeconds);
    const most = BigInt(X402_MAX_AMOUNT);
    const own = { chainId: network.chainId, transfer, extra: written.extra, until, most };
    for (;;) {
      const purchase = await buyer.sign({ ...offer, ...own });
      const { name, value } = headerOf(2, writePayload(offer, purchase.payload));
      const answer = await fetch(X402_URL, { headers: { [name]: value } });
      if (answer.status === 402 && purchase.recover(decode(answer, "PAYMENT-REQUIRED"))) continue;
      if (answer.ok) purchase.learn(decode(answer, "PAYMENT-RESPONSE"));
      return answer;
    }
  };
}
