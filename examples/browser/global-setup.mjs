import { startHarnessPool } from "x402-facilitator-kit/pool";

export default async function globalSetup() {
  const pool = await startHarnessPool({ networks: ["base"] });
  return () => pool.close();
}
