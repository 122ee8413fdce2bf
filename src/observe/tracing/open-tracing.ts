import type * as OpenTelemetry from "@opentelemetry/api";
import type { Timeline } from "../timeline/timeline.ts";
import type { Tracing } from "./create-tracing.ts";

/**
 * Traces a service, if `@opentelemetry/api` is installed and an SDK is registered with it. Otherwise undefined, and no
 * timeline is asked for.
 *
 * @param load loads the API; by default the installed one
 * @throws the error of loading an API that is installed but broken
 */
export async function openTracing(
  timeline: () => Timeline,
  load: () => Promise<typeof OpenTelemetry | undefined> = loadWhereUsed,
): Promise<Tracing | undefined> {
  const api = await load().catch(absent);
  if (api === undefined || !isRegistered(api)) return undefined;
  const { createTracing } = await import("./create-tracing.ts");
  return createTracing(api, timeline());
}

/**
 * An SDK is registered under a symbol that all copies of the API share. Without it, the API's fifty files are not
 * loaded, which would delay every start.
 */
async function loadWhereUsed(): Promise<typeof OpenTelemetry | undefined> {
  if (!(Symbol.for("opentelemetry.js.api.1") in globalThis)) return undefined;
  return import("@opentelemetry/api");
}

function absent(error: unknown): undefined {
  if (error instanceof Error && "code" in error && error.code === "ERR_MODULE_NOT_FOUND") return undefined;
  throw error;
}

/** Without an SDK, the API's tracers do nothing. */
function isRegistered({ trace }: typeof OpenTelemetry): boolean {
  const provider = trace.getTracerProvider();
  // The API's proxy provider, perhaps of another copy of the API: it has a delegate once an SDK is registered.
  if (!("getDelegateTracer" in provider) || typeof provider.getDelegateTracer !== "function") return true;
  return provider.getDelegateTracer("x402-facilitator-kit") !== undefined;
}
