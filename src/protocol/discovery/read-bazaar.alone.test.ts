import { declareDiscoveryExtension } from "@x402/extensions/bazaar";
import { expect, test, vi } from "vitest";
import { z } from "zod";
import { readBazaar } from "./read-resource.ts";

vi.mock("zod", async (load) => {
  const { z, ...rest } = await load<typeof import("zod")>();
  return { ...rest, z: { ...z, fromJSONSchema: vi.fn(z.fromJSONSchema) } };
});

test("a description has its schema built once, however many payments repeat it", () => {
  const build = vi.mocked(z.fromJSONSchema);
  // biome-ignore lint/suspicious/noExplicitAny: it is changed as no program would
  const { bazaar: extension }: any = declareDiscoveryExtension({
    input: { city: "Rome" },
    inputSchema: { properties: { city: { type: "string" } }, required: ["city"] },
  });
  extension.info.input.method = "GET";
  for (let count = 0; count < 5; count++) expect(readBazaar(structuredClone(extension))?.type).toBe("http");
  expect(build).toHaveBeenCalledTimes(1);
  extension.info.input.queryParams.city = 7_001;
  for (let count = 0; count < 5; count++) expect(readBazaar(structuredClone(extension))).toBeUndefined();
  expect(build).toHaveBeenCalledTimes(2);
});
