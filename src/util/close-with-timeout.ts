import type { Logger } from "pino";

export type ClosingOptions = {
  logger: Logger;
  /** How long it may take, milliseconds. */
  timeoutMs: number;
  /** Ends the process, whatever is still under way; by default with exit code 1. */
  giveUp?: () => void;
};

/**
 * Closes a service, and ends the process when that takes too long: what stops a process counts on its end. Work that
 * is cut off then is in the database, and is taken up by the next start.
 */
export async function closeWithTimeout(
  service: { close(): Promise<void> },
  { logger, timeoutMs, giveUp = () => process.exit(1) }: ClosingOptions,
): Promise<void> {
  const timer = setTimeout(() => {
    logger.fatal(
      { seconds: timeoutMs / 1000 },
      "the service did not shut down in time; the process is ended",
    );
    giveUp();
  }, timeoutMs);
  try {
    await service.close();
  } finally {
    clearTimeout(timer);
  }
}
