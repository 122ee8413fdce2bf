import { startHarnessPool } from "x402-facilitator-kit/pool";

export default async function setup() {
  globalThis.harnessPool = await startHarnessPool({ networks: ["base"] });
}
