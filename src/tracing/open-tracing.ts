import type * as OpenTelemetry from "@opentelemetry/api";
import type { Tracing } from "./create-tracing.ts";

/**
 * Traces of what the service with this id does, where `@opentelemetry/api` is installed and an SDK is registered with
 * it. Undefined otherwise, and then nothing listens to the channels.
 *
 * @param load gives the API; what is installed by default
 * @throws what loading the API throws where it is there and broken
 */
export async function openTracing(
  serviceId: string,
  load: () => Promise<typeof OpenTelemetry | undefined> = loadWhereUsed,
): Promise<Tracing | undefined> {
  const api = await load().catch(absent);
  if (api === undefined || !isRegistered(api)) return undefined;
  const { createTracing } = await import("./create-tracing.ts");
  return createTracing(api, serviceId);
}

/**
 * An SDK is registered under a symbol that all copies of the API share. Without it, the fifty files of the API need not be
 * read, which a command that starts would wait for.
 */
async function loadWhereUsed(): Promise<typeof OpenTelemetry | undefined> {
  if (!(Symbol.for("opentelemetry.js.api.1") in globalThis)) return undefined;
  return import("@opentelemetry/api");
}

function absent(error: unknown): undefined {
  if (error instanceof Error && "code" in error && error.code === "ERR_MODULE_NOT_FOUND") return undefined;
  throw error;
}

/** Without an SDK the API hands out tracers that do nothing. */
function isRegistered({ trace }: typeof OpenTelemetry): boolean {
  const provider = trace.getTracerProvider();
  // The API's own stand-in, perhaps that of another copy of it: it has a delegate once an SDK is registered.
  if (!("getDelegateTracer" in provider) || typeof provider.getDelegateTracer !== "function") return true;
  return provider.getDelegateTracer("x402-facilitator-kit") !== undefined;
}
