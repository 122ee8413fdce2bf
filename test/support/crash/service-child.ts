// A service in its own process, which kills itself at the step named by its argument.
import { z } from "zod";
import { createAuthorizers, createLocalSigner } from "../../../src/chain/signing/local-signer.ts";
import { createLogger } from "../../../src/observe/log/logger.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import { address, bytes32 } from "../../../src/protocol/primitives.ts";
import { localNetwork } from "../local-network.ts";
import { transferFromWays } from "../methods/transfer-from/transfer-from-ways.ts";
import { openMigrated } from "../open-migrated.ts";
import { createWrappedService } from "../wrapped-service.ts";
import { boundaries, giftBoundaries, refuseLarge, stopAt } from "./boundaries.ts";

const options = z
  .object({
    rpcUrl: z.string(),
    facilitatorContract: address,
    databaseUrl: z.string(),
    apiKey: z.string(),
    dieAt: z.enum([...boundaries, ...giftBoundaries]).optional(),
    operators: z.array(bytes32).optional(),
    drainDelayMs: z.number().optional(),
    takesBytes: z.number().optional(),
    leaseMs: z.number(),
    blockTimeMs: z.number(),
    /** Pays by the payment method that exists only in tests. */
    transferFrom: z.boolean().optional(),
  })
  .parse(JSON.parse(process.argv[2] ?? "{}"));

const [first = createLocalSigner(harnessAccounts.operator.privateKey), ...others] = (
  options.operators ?? []
).map(createLocalSigner);
const die = () => process.kill(process.pid, "SIGKILL");
const wrap =
  options.takesBytes === undefined
    ? options.dieAt && stopAt(options.dieAt, die)
    : refuseLarge(options.takesBytes, die);
const service = await createWrappedService(wrap, {
  networks: [
    {
      ...localNetwork(options),
      payTo: "recipients",
      ...createAuthorizers([harnessAccounts.authorizer.privateKey]),
    },
  ],
  signers: [first, ...others],
  sponsor: createLocalSigner(harnessAccounts.sponsor.privateKey),
  database: await openMigrated(options.databaseUrl),
  apiKeyPepper: "test",
  settleWaitMs: 10_000,
  leaseMs: options.leaseMs,
  ...(options.transferFrom && { ways: transferFromWays }),
  logger: createLogger("fatal"),
});
const { organizations } = service;
if ((await organizations.find("org")) === null) {
  await organizations.create({ id: "org", name: "Org" });
  await organizations.setRecipient("org", "base", harnessAccounts.recipient.address);
  await organizations.createKey("org", { scopes: ["verify", "settle"], key: options.apiKey });
}
await service.start();
console.log(await service.listen({ host: "127.0.0.1", port: 0 }));
process.on("SIGTERM", async () => {
  const { drainDelayMs: delayMs } = options;
  if (delayMs !== undefined) await service.drain({ delayMs, finishMs: 10_000 });
  await service.close();
});
