// A page that buys with the wallet of its browser, at a shop of another origin.
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { createWalletClient, custom } from "viem";

const { shop, network, asset } = Object.fromEntries(new URLSearchParams(location.search));
const output = document.querySelector("output");

/** The first wallet that announces itself (EIP-6963). */
const { provider } = await new Promise((resolve) => {
  window.addEventListener("eip6963:announceProvider", ({ detail }) => resolve(detail), { once: true });
  window.dispatchEvent(new Event("eip6963:requestProvider"));
});

async function buy() {
  const chainId = `0x${Number(network.split(":")[1]).toString(16)}`;
  await provider.request({ method: "wallet_switchEthereumChain", params: [{ chainId }] });
  const [account] = await provider.request({ method: "eth_requestAccounts" });
  const wallet = createWalletClient({ account, transport: custom(provider) });
  const signer = { address: account, signTypedData: (typedData) => wallet.signTypedData(typedData) };
  const client = new x402Client().register(network, new ExactEvmScheme(signer));
  client.setSpendControls({ allowedAssets: [{ network, asset, maxAmountPerPayment: "10000" }] });
  const response = await wrapFetchWithPayment(fetch, client)(shop);
  return `${response.status} ${await response.text()}`;
}

document.querySelector("button").addEventListener("click", async () => {
  output.textContent = await buy().catch(String);
});
