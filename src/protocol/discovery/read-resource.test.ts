import {
  declareDiscoveryExtension,
  isValidRouteTemplate,
  sanitizeResourceServiceMetadata,
} from "@x402/extensions/bazaar";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { exampleBody, parseBody } from "../../../test/support/example-payment.ts";
import { buildBody } from "../../methods/build-request.ts";
import { methodOf } from "../../methods/methods.ts";
import { permitPayloadFor } from "../../methods/permit2/permit2-payload.ts";
import { networks } from "../networks.ts";
import { readBazaar, readResource, readServiceMetadata } from "./read-resource.ts";

const contract = "0xE09e2221cD864A64554e54D4E43adffb9aa9f8FE";

// biome-ignore lint/suspicious/noExplicitAny: tests put wrong things into it on purpose
type Json = any;

/** A payment's body, changed, and what is noted of it. */
function read(x402Version: 1 | 2, change: (body: Json) => void = () => {}) {
  const body: Json = structuredClone(
    exampleBody({ x402Version, payTo: contract, resource: "https://shop.example/weather?city=Rome#today" }),
  );
  change(body);
  return noted(body);
}

function noted(body: Json) {
  const request = parseBody(body);
  return readResource(body, request, methodOf(request.payment));
}

describe("what a payment was for", () => {
  test("is its URL without the query, and how it was paid for, in either version", () => {
    expect(read(1)?.resource).toEqual({
      resource: "https://shop.example/weather",
      type: "http",
      x402Version: 1,
      mimeType: "application/json",
      accepts: [
        {
          scheme: "exact",
          network: "base",
          maxAmountRequired: "10000",
          resource: "https://shop.example/weather",
          description: "",
          mimeType: "application/json",
          asset: networks.base.usdc.address,
          payTo: contract,
          maxTimeoutSeconds: 60,
          extra: { name: "USD Coin", version: "2" },
        },
      ],
    });
    expect(read(2)?.resource).toMatchObject({
      resource: "https://shop.example/weather",
      x402Version: 2,
      accepts: [{ network: "eip155:8453", amount: "10000" }],
    });
  });

  test.each(["exact", "upto"] as const)("by Permit2 and scheme %s is shown as it was offered", (scheme) => {
    const { address: asset } = networks.base.usdc;
    const offered = {
      ...({ x402Version: 2, network: networks.base, asset: networks.base.usdc, payTo: contract } as const),
      ...{ amount: 1n, resource: "https://shop.example/weather", scheme },
    };
    const facilitator = scheme === "upto" ? { facilitatorAddress: contract } : undefined;
    const extra = { assetTransferMethod: "permit2", ...facilitator };
    const body: Json = buildBody({ ...offered, extra }, permitPayloadFor({ scheme, asset }));
    // What settle takes is no price.
    if (scheme === "upto") body.paymentRequirements.amount = "0";
    const named = { name: "USD Coin", version: "2" };
    expect(noted(body)?.resource.accepts).toMatchObject([
      { scheme, amount: "1", extra: { ...named, ...extra } },
    ]);
    // A token without a domain of its own has neither name nor version.
    body.paymentRequirements.extra = extra;
    expect(noted(body)?.resource.accepts).toMatchObject([{ scheme, extra }]);
    body.paymentRequirements.extra = undefined;
    expect(noted(body)?.resource.accepts).toMatchObject([{ extra: { assetTransferMethod: "permit2" } }]);
  });

  test.each([
    "nonsense",
    "",
    "file:///etc/passwd",
    "javascript:alert(1)",
    `https://a.example/${"x".repeat(2_048)}`,
    7,
  ])("is not noted where it is no address of a web server: %s", (url) => {
    expect(read(2, (body) => Object.assign(body.paymentPayload.resource, { url }))).toBeUndefined();
    expect(
      read(1, (body) => Object.assign(body.paymentRequirements, { resource: String(url) })),
    ).toBeUndefined();
  });

  test.each([
    ["text that is turned around", "pay \u202e001 CDSU\u202c", "pay  001 CDSU"],
    ["hidden characters and other ends of lines", "a\u200bb\u2028c\u2029\ud800d", "a b c d"],
    ["half a character at its end", `${"x".repeat(499)}\u{1f600}`, "x".repeat(499)],
  ])("shows no %s in a description", (_, description, shown) => {
    const seen = read(2, ({ paymentPayload }) => Object.assign(paymentPayload.resource, { description }));
    expect(seen?.resource.description).toBe(shown);
  });

  test("keeps no names and passwords of a URL, and no long or multi-line description", () => {
    const seen = read(2, ({ paymentPayload }) => {
      paymentPayload.resource.url = "https://user:secret@shop.example/a";
      paymentPayload.resource.description = `a\n\u0000b${"x".repeat(1_000)}`;
    });
    expect(seen?.resource.resource).toBe("https://shop.example/a");
    expect(seen?.resource.description).toMatch(/^a bx+$/);
    expect(seen?.resource.description).toHaveLength(500);
  });
});

describe("the extension bazaar", () => {
  const declared: Json = declareDiscoveryExtension({
    input: { city: "Rome" },
    inputSchema: { properties: { city: { type: "string" } }, required: ["city"] },
    output: { example: { temperature: 20 } },
  });
  const { bazaar } = declared;
  /** As the server sends it: the method is the route's. */
  const sent = (): Json => {
    const extension = structuredClone(bazaar);
    extension.info.input.method = "GET";
    return extension;
  };

  test("of the public package is read", () => {
    expect(readBazaar(sent())).toMatchObject({
      type: "http",
      info: { input: { queryParams: { city: "Rome" } } },
    });
    const seen = read(2, (body) => {
      body.paymentPayload.extensions = { bazaar: { ...sent(), routeTemplate: "/weather/:country" } };
    });
    expect(seen?.resource).toMatchObject({
      resource: "https://shop.example/weather/:country",
      extensions: { bazaar: { info: { input: { method: "GET" } } } },
    });
  });

  test("keeps nothing of its schema in this process", () => {
    const extension = sent();
    extension.schema.id = "of a payer";
    expect(readBazaar(extension)).toBeDefined();
    expect(z.toJSONSchema(z.globalRegistry).schemas).not.toHaveProperty("of a payer");
  });

  test("distinguishes the tools of one MCP server", () => {
    const tool = (toolName: string): Json => {
      const mcp: Json = declareDiscoveryExtension({
        toolName,
        inputSchema: { type: "object", properties: { ticker: { type: "string" } } },
      });
      return read(2, (body) => {
        body.paymentPayload.extensions = mcp;
      });
    };
    expect(tool("a").resource.type).toBe("mcp");
    expect(tool("a").key).toBe(tool("a").key);
    expect(tool("a").key).not.toBe(tool("b").key);
    for (const name of ["a\u001b[2J", "a\r\nx-evil: 1", "a\u202eb", "\u2066a", ""]) {
      expect(tool(name).resource).not.toHaveProperty("extensions");
    }
  });

  test.each<[string, (extension: Json) => void]>([
    ["breaks its own schema", (extension) => Object.assign(extension.info.input.queryParams, { city: 7 })],
    ["is long", (extension) => Object.assign(extension.info.input.queryParams, { city: "x".repeat(5_000) })],
    [
      "has a schema that refers elsewhere",
      ({ schema }) => Object.assign(schema, { $ref: "https://evil.example/" }),
    ],
    [
      "has a schema that doubles its work with each reference",
      ({ schema }) =>
        Object.assign(schema, {
          allOf: [{ $ref: "#/$defs/0" }],
          $defs: Object.fromEntries(
            Array.from({ length: 11 }, (_, index) => {
              const next = { $ref: `#/$defs/${index + 1}` };
              return [index, index === 10 ? {} : { allOf: [next, next] }];
            }),
          ),
        }),
    ],
    [
      "has many values that are each held against many",
      ({ info, schema }) => {
        info.input.queryParams.many = Array.from({ length: 70 }, () => 0);
        schema.properties.input.properties.queryParams = {
          type: "object",
          properties: { many: { type: "array", items: { enum: Array.from({ length: 70 }, (_, n) => n) } } },
        };
      },
    ],
    [
      "has a schema of many objects, each of which takes a while to prepare",
      ({ schema }) => {
        const many = Array.from({ length: 100 }, (_, n) => [`a${n}`, { type: "object", properties: {} }]);
        schema.properties.input.properties.queryParams.properties = Object.fromEntries(many);
      },
    ],
    [
      "has a schema with patterns",
      ({ schema }) => Object.assign(schema.properties, { a: { pattern: "(a+)+$" } }),
    ],
    ["has no schema", (extension) => Object.assign(extension, { schema: undefined })],
    ["has another type of input", ({ info }) => Object.assign(info.input, { type: "ftp" })],
  ])("is left out where it %s, and the resource is noted without it", (_, change) => {
    const extension = sent();
    change(extension);
    expect(readBazaar(extension)).toBeUndefined();
    const seen = read(2, (body) => {
      body.paymentPayload.extensions = { bazaar: extension };
    });
    expect(seen?.resource).not.toHaveProperty("extensions");
  });

  test.each<[string, (extension: Json) => void]>([
    ["is wide", ({ schema }) => Object.assign(schema, { a: Array.from({ length: 10_000 }, () => 1) })],
    [
      "is deep",
      (extension) => {
        for (let level = 0; level < 4_000; level++)
          extension.info.input.body = { body: extension.info.input.body };
      },
    ],
  ])("that %s is left out after a look at its beginning", (_, change) => {
    const extension = sent();
    change(extension);
    let reads = 0;
    const counting = (value: Json): Json =>
      typeof value !== "object" || value === null
        ? value
        : new Proxy(value, {
            get(target, name) {
              reads++;
              return counting(Reflect.get(target, name));
            },
          });
    expect(readBazaar(counting(extension))).toBeUndefined();
    expect(reads).toBeLessThan(1_000);
  });

  test.each([
    "/users/:id",
    "users",
    "/a/../b",
    "/a/%2e%2e/b",
    "/a://b",
    "/a%3A%2F%2Fb",
    "/%zz",
    "/",
    "/a b",
    "",
  ])("has the template %s where the public package takes it", (routeTemplate) => {
    const isTaken = readBazaar({ ...sent(), routeTemplate })?.routeTemplate !== undefined;
    expect(isTaken).toBe(isValidRouteTemplate(routeTemplate));
  });
});

describe("the description of the service", () => {
  const text = fc.oneof(
    fc.string(),
    fc.string({ unit: "binary" }),
    fc.constantFrom("Weather", " ", "x".repeat(32), "x".repeat(33), "Wetter\u00e4", "WEATHER", "a\u0000"),
  );
  const iconUrl = fc.oneof(
    fc.webUrl(),
    fc.constantFrom(
      ...[
        "https://a.example/i.png",
        "http://127.0.0.1/i",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://[::1]/",
      ],
      ...[
        "https://user@a.example/",
        "data:image/png;base64,AA",
        "https://localhost/",
        "http://LOCALHOST/",
        "ftp://a.b/",
      ],
      ...[
        "https://%6cocalhost/",
        "http://127.1/",
        "//a.example/i.png",
        "https://a.example/\n",
        "",
        "http://ip6-loopback/",
      ],
    ),
  );

  test("keeps what the public package keeps", () => {
    fc.assert(
      fc.property(text, fc.array(text, { maxLength: 8 }), iconUrl, (serviceName, tags, icon) => {
        const kept = sanitizeResourceServiceMetadata({
          url: "https://a.example",
          serviceName,
          tags,
          iconUrl: icon,
        });
        const defined = Object.fromEntries(Object.entries(kept).filter(([, value]) => value !== undefined));
        expect(readServiceMetadata({ serviceName, tags, iconUrl: icon })).toEqual(defined);
      }),
      { numRuns: 500 },
    );
  });

  test("has no icon on the reader's own machine, however it is spelled", () => {
    expect(readServiceMetadata({ iconUrl: "http://localhost./" })).toEqual({});
  });
});
