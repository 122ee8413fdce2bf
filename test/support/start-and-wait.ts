// Started by chains.chain.test.ts as a separate process: starts two chains, prints the pids of everything it started,
// then does what its argument says.
import { resolveFacilitatorContracts } from "../../src/harness/setup/addresses.ts";
import { startChains } from "../../src/harness/setup/chains.ts";

const chains = await startChains({
  networks: ["base", "polygon"],
  facilitatorContracts: resolveFacilitatorContracts(),
});

if (process.argv[2] === "throw") {
  setTimeout(() => {
    throw new Error("uncaught, on purpose");
  }, 10);
}
if (process.argv[2] === "stop on SIGINT") {
  process.once("SIGINT", async () => {
    const answers = Object.values(chains.chains).map(({ node }) => node.request("eth_chainId"));
    console.log(JSON.stringify(await Promise.all(answers)));
    await chains.stop();
  });
}

// Printed only now that the handler is in place, because the reader may send the signal at once.
console.log(JSON.stringify(chains.pids));
if (process.argv[2] === "stop") await chains.stop();
