// A service in a separate process that kills itself at a step of a recovery, or some time after it.
import { z } from "zod";
import { createLocalSigner } from "../../src/chain/signing/local-signer.ts";
import { createLogger } from "../../src/observe/log/logger.ts";
import { harnessAccounts } from "../../src/payer/accounts.ts";
import { address } from "../../src/protocol/primitives.ts";
import { localNetwork } from "./local-network.ts";
import { openMigrated } from "./open-migrated.ts";
import { recoverySteps, watchSteps } from "./recovery-steps.ts";
import { createWrappedService } from "./wrapped-service.ts";

const options = z
  .object({
    rpcUrl: z.string(),
    facilitatorContract: address,
    databaseUrl: z.string(),
    dieAt: z.enum(recoverySteps),
    afterMs: z.int(),
  })
  .parse(JSON.parse(process.argv[2] ?? "{}"));

const die = () => process.kill(process.pid, "SIGKILL");

const wrap = watchSteps((step) => {
  if (step !== options.dieAt) return;
  if (options.afterMs === 0) die();
  else setTimeout(die, options.afterMs);
});
const service = await createWrappedService(wrap, {
  networks: [localNetwork({ ...options, blockTimeMs: 100 })],
  signers: [createLocalSigner(harnessAccounts.operator.privateKey)],
  recoverer: createLocalSigner(harnessAccounts.recoverer.privateKey),
  database: await openMigrated(options.databaseUrl),
  apiKeyPepper: "test",
  leaseMs: 1_000,
  logger: createLogger("fatal"),
});
await service.start();
console.log(await service.listen({ host: "127.0.0.1", port: 0 }));
