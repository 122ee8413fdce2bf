import { readEnvironment } from "../../config/environment.ts";
import { ConfigurationError } from "../../errors.ts";
import { defineCommand } from "../kit/command.ts";
import { flag } from "../kit/readers.ts";
import { serveVariables } from "./variables.ts";

export const serve = defineCommand({
  usesEnvFile: true,
  showsWarnings: true,
  options: { migrate: flag("bring the database up to date first"), ...serveVariables },

  async run({ migrate }, terminal) {
    const interrupted = terminal.takeSignals();
    const config = readEnvironment(terminal.env);
    const [{ createLogger }, { findRefusedKeys }, { createSigners }, { openReady }, { runService }] =
      await Promise.all([
        import("../../logging/logger.ts"),
        import("../../inspection/keys.ts"),
        import("./signers.ts"),
        import("../../inspection/database.ts"),
        import("./run-service.ts"),
      ]);
    const refused = findRefusedKeys(config);
    if (refused.length > 0) throw new ConfigurationError(refused);

    const logger = createLogger(config.logLevel);
    for (const { name, problem } of [...terminal.warnings, ...config.warnings])
      logger.warn({ variable: name }, problem);
    const signers = await createSigners(config.operators);
    const onMigrated = (migrations: readonly string[]) =>
      logger.info({ migrations }, "the database was brought up to date");
    const database = await openReady(config.databaseUrl, migrate ? onMigrated : undefined);
    await runService(interrupted, { config, signers, database, logger });
    return 0;
  },
});
