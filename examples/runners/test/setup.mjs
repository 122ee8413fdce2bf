import { startHarnessPool } from "x402-facilitator-kit/pool";

let pool;

export async function globalSetup() {
  pool = await startHarnessPool({ networks: ["base"] });
}

export async function globalTeardown() {
  await pool.close();
}
