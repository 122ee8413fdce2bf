import { channel } from "node:diagnostics_channel";
import * as api from "@opentelemetry/api";
import { TracerProvider } from "@opentelemetry/sdk-trace";
import { afterEach, beforeEach, expect, test } from "vitest";
import { channels } from "../channels/channels.ts";
import { createTimeline } from "../timeline/timeline.ts";
import { openTracing } from "./tracing.ts";

/** The names of the channels with subscribers: other tests of this process may have left some. */
const heard = () =>
  Object.values(channels).flatMap(({ name }) => (channel(name).hasSubscribers ? [name] : []));

const notAsked = () => {
  throw new Error("a timeline is opened");
};

let before: readonly string[] = [];
beforeEach(() => {
  before = heard();
});
afterEach(() => api.trace.disable());

/** Node's error for a missing package. */
const missing = "@opentelemetry/api-that-is-not-installed";
const notInstalled = () => import(missing);

test("without the API nothing is subscribed", async () => {
  expect(await openTracing(notAsked, notInstalled)).toBeUndefined();
  expect(heard()).toEqual(before);
});

test("with the API and no SDK nothing is subscribed: other packages bring the API", async () => {
  expect(await openTracing(notAsked)).toBeUndefined();
  expect(heard()).toEqual(before);
});

test("an API that is installed and broken is no silence", async () => {
  await expect(openTracing(notAsked, () => Promise.reject(new SyntaxError("cut off")))).rejects.toThrow(
    "cut off",
  );
});

test("with an SDK the channels are heard until the timeline is closed", async () => {
  api.trace.setGlobalTracerProvider(new TracerProvider());
  const timeline = createTimeline("service");
  const tracing = await openTracing(() => timeline);
  expect(heard()).toEqual(expect.arrayContaining(["request", "rpc", "answer"].map(fullName)));
  tracing?.close();
  timeline.close();
  expect(heard()).toEqual(before);
});

function fullName(name: string): string {
  return `x402-facilitator-kit:${name}`;
}
