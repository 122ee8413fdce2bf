// Imported by every test file: a failing observer never ends a payment, but must not go unnoticed in tests.
import { setImmediate } from "node:timers/promises";
import { afterAll, beforeAll, expect } from "vitest";
import { observerFailed } from "../../src/observe/channels/channels.ts";

const failures: unknown[] = [];

const note = (warning: Error & { code?: string; detail?: string }) => {
  if (warning.code === observerFailed) failures.push(`${warning.message}\n${warning.detail}`);
};

beforeAll(() => {
  process.on("warning", note);
});

afterAll(async () => {
  // Warnings are emitted in a later tick.
  await setImmediate();
  process.off("warning", note);
  expect(failures.splice(0)).toEqual([]);
});
