import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const rpcUrl = process.env.EVM_RPC_URL ?? "http://127.0.0.1:8545";

/** Those that the suite sends transactions of: its client, and the wallet that gives the client gas. */
const senders = ["0x652026B65e32ffC7487F89D68D208977789a04d3", "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"];
/** A token of Base Sepolia whose approvals the suite reads beside those of USDC; here nobody has any of it. */
const otherToken = "0xeED520980fC7C7B4eB379B96d61CEdea2423005a";
/** The code of the local USDC, behind its proxy. */
const tokenCode = "0xb92Ed5F52eE0CA8469E21D6b16dC0F90d635889B";
/** What the suite's servers have routes for, and this kit refuses: they do not start where it is not listed. */
const claims = [
  "exact@solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1",
  "upto@solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1",
  "batch-settlement@eip155:84532",
  "auth-capture@eip155:84532",
];

const chainsAreReady = "The chains are ready";
const kit = spawn(
  fileURLToPath(new URL("kit/node_modules/.bin/x402-kit", import.meta.url)),
  [
    ...["up", "--plain", "--no-demo", "--networks", "base-sepolia", "--claim", claims.join(",")],
    ...["--rpc-port", `base-sepolia=${new URL(rpcUrl).port}`, "--ready-line", chainsAreReady],
  ],
  { stdio: ["ignore", "pipe", "inherit"] },
);
kit.on("error", ({ message }) => {
  console.error(`${message}. Install the kit first: bash install.sh`);
  process.exitCode = 1;
});
kit.on("exit", (code) => {
  process.exitCode = code ?? 1;
});
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => kit.kill(signal));

for await (const line of createInterface({ input: kit.stdout })) {
  if (line !== chainsAreReady) {
    console.log(line);
    continue;
  }
  for (const sender of senders) await ask("anvil_setBalance", sender, "0xde0b6b3a7640000");
  await ask("anvil_setCode", otherToken, await ask("eth_getCode", tokenCode, "latest"));
  // What the suite waits for.
  console.log("Facilitator listening");
}

async function ask(method, ...params) {
  const response = await fetch(rpcUrl, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  const { result, error } = await response.json();
  if (error !== undefined) throw new Error(`${method}: ${error.message}`);
  return result;
}
