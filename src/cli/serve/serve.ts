import { randomUUID } from "node:crypto";
import { readEnvironment } from "../../config/environment.ts";
import { warnOfOpenFiles } from "../../config/open-files.ts";
import { readContractLists } from "../../config/served-networks.ts";
import { createConfigurationReader } from "../../config/variable-reader.ts";
import { variablesOf } from "../../config/variables.ts";
import type { Timeline } from "../../observe/timeline/timeline.ts";
import { ConfigurationError } from "../../util/errors.ts";
import { defineCommand, flag, networkFileOption } from "../kit/command.ts";
import { adviseOnSetUp } from "../kit/files.ts";

/** How much is kept about payments for operators and traces. */
const timelineBounds = { payments: 2_000, bytes: 20_000_000, entries: 500 };

export const serve = defineCommand({
  usesEnvFile: true,
  showsWarnings: true,
  adviseOnConfiguration: adviseOnSetUp,
  options: {
    migrate: flag("bring the database up to date first"),
    ...networkFileOption,
    json: flag("print one line of JSON with the URLs once it serves"),
  },
  variables: variablesOf("serve"),
  environment: readEnvironment,

  async run({ migrate, json }, terminal, config) {
    const interrupted = terminal.takeSignals();
    const [
      { createLogger },
      { findRefusedKeys },
      { createSigners },
      { openReady, refuseStranding, warnOfClock, warnOfPlainText },
      { checkDiskSpace },
      { checkSignatureRecovery },
      { runService },
      { openTracing },
      { createTimeline },
    ] = await Promise.all([
      import("../../observe/log/logger.ts"),
      import("../../service/health/check-configuration.ts"),
      import("../../chain/signing/create-signers.ts"),
      import("../../service/health/check-database.ts"),
      import("../../service/health/check-configuration.ts"),
      import("../../service/health/check-configuration.ts"),
      import("./run-service.ts"),
      import("../../observe/tracing/tracing.ts"),
      import("../../observe/timeline/timeline.ts"),
    ]);
    const refused = findRefusedKeys(config);
    if (refused.length > 0) throw new ConfigurationError(refused);

    const serviceId = randomUUID();
    let timeline: Timeline | undefined;
    const openTimeline = () => {
      timeline ??= createTimeline(serviceId, { bounds: timelineBounds });
      return timeline;
    };
    const tracing = await openTracing(openTimeline);
    const logger = createLogger(config.logLevel, undefined, tracing?.logFields);
    const warnings = [...terminal.warnings, ...config.warnings, ...warnOfOpenFiles(config.maxSettles)];
    for (const { name, problem } of warnings) logger.warn({ variable: name }, problem);
    const plainText = await warnOfPlainText(config.databaseUrl);
    if (plainText !== null) logger.warn({ advice: plainText.advice }, `database: ${plainText.detail}`);
    for (const { name, detail, advice } of checkDiskSpace(config.databaseUrl)) {
      logger.warn({ advice }, `${name}: ${detail}`);
    }
    const slowRecovery = checkSignatureRecovery();
    if (slowRecovery) logger.warn({ advice: slowRecovery.advice }, `signatures ${slowRecovery.detail}`);
    const signers = await createSigners(config.operators);
    const onMigrated = (migrations: readonly string[]) =>
      logger.info({ migrations }, "the database was brought up to date");
    if (migrate) {
      const reader = createConfigurationReader(terminal.env);
      const contracts = readContractLists(reader);
      await refuseStranding(config.databaseUrl, { contracts, networks: reader.networks });
    }
    const database = await openReady(config.databaseUrl, { onMigrated: migrate ? onMigrated : undefined });
    const wrongClock = warnOfClock(database);
    if (wrongClock !== null) logger.warn({ advice: wrongClock.advice }, wrongClock.detail);
    if (tracing !== undefined) logger.info("tracing: an OpenTelemetry SDK is registered");
    try {
      const onServing = (urls: object) => {
        if (json) terminal.print(JSON.stringify(urls));
      };
      await runService(interrupted, {
        config,
        signers,
        database,
        logger,
        serviceId,
        openTimeline,
        onServing,
      });
    } finally {
      tracing?.close();
      timeline?.close();
    }
    return 0;
  },
});
