import { beforeEach, describe, expect, test } from "vitest";
import { backends, useTestDatabase } from "../../../test/support/databases.ts";
import { exampleBody, parseBody } from "../../../test/support/example-payment.ts";
import type { Database } from "../../ledger/database/database.ts";
import { buildBody } from "../../methods/build-request.ts";
import { waysToPay } from "../../methods/on-chain/ways-to-pay.ts";
import { permitPayloadFor } from "../../methods/permit2/permit2-payload.ts";
import { mostResources } from "../../protocol/discovery/discovery-schemas.ts";
import { type NetworkName, networks } from "../../protocol/networks.ts";
import type { X402Version } from "../../protocol/requests.ts";
import { type Catalog, createCatalog, type DiscoveryTables } from "./catalog.ts";

describe.each(backends)("on $name", (backend) => {
  const database = useTestDatabase(backend);
  let db: Database;
  let time: number;
  let catalog: Catalog;
  const warnings: unknown[] = [];
  beforeEach(async () => {
    db = await database.open();
    time = 1_800_000_000_000;
    warnings.length = 0;
    catalog = createCatalog({
      database: db,
      ways: waysToPay,
      now: () => time,
      log: { warn: (said: unknown) => void warnings.push(said) },
    });
  });

  function note(
    organization: string,
    url: string,
    {
      x402Version = 2,
      network = "base",
      amount = 5n,
    }: { x402Version?: X402Version; network?: NetworkName; amount?: bigint } = {},
  ) {
    const on = network === "polygon" ? networks.polygon : networks.base;
    const body = exampleBody({ x402Version, network: on, asset: on.usdc, amount, resource: url });
    catalog.note(organization, body, parseBody(body));
    return catalog.settled();
  }

  const urlsOf = async (organization: string) =>
    (await catalog.read(organization)).map(({ resource }) => resource);

  test("an organization reads only what it was itself paid for, the newest first", async () => {
    await note("shop", "https://shop.example/a");
    time += 1;
    await note("shop", "https://shop.example/b?query=1");
    await note("rival", "https://rival.example/");
    expect(await urlsOf("shop")).toEqual(["https://shop.example/b", "https://shop.example/a"]);
    expect(await urlsOf("rival")).toEqual(["https://rival.example/"]);
    expect(await urlsOf("stranger")).toEqual([]);
  });

  test("a resource is listed once, with every way in which it was paid for and its newest price", async () => {
    await note("shop", "https://shop.example/a");
    await note("shop", "https://shop.example/a", { network: "polygon" });
    time += 120_000;
    await note("shop", "https://shop.example/a", { amount: 7n });
    const [resource, ...others] = await catalog.read("shop");
    expect(others).toEqual([]);
    expect(resource?.accepts).toMatchObject([
      { network: "eip155:8453", amount: "7" },
      { network: "eip155:137", amount: "5" },
    ]);
    expect(resource?.lastUpdated).toBe(new Date(time).toISOString());
  });

  test("what was paid for in several ways is listed with each, whichever came last", async () => {
    const resource = "https://shop.example/a";
    const { base } = networks;
    const payTo = `0x${"f0".repeat(20)}` as const;
    for (const scheme of ["upto", "exact", "upto"] as const) {
      const offer = { x402Version: 2, network: base, asset: base.usdc, payTo, amount: 1n, resource } as const;
      const body = buildBody({ ...offer, scheme }, permitPayloadFor({ scheme, asset: base.usdc.address }));
      catalog.note("shop", body, parseBody(body));
      await catalog.settled();
      await note("shop", resource);
      time += 120_000;
    }
    const [{ accepts } = { accepts: [] }] = await catalog.read("shop");
    expect(accepts.map(({ scheme, extra }) => [scheme, extra?.assetTransferMethod])).toEqual([
      ["exact", undefined],
      ["upto", "permit2"],
      ["exact", "permit2"],
    ]);
  });

  test("the same payment again within a minute is not written again", async () => {
    await note("shop", "https://shop.example/a");
    const first = (await catalog.read("shop"))[0]?.lastUpdated;
    time += 59_000;
    await note("shop", "https://shop.example/a");
    expect((await catalog.read("shop"))[0]?.lastUpdated).toBe(first);
    time += 1_000;
    await note("shop", "https://shop.example/a");
    expect((await catalog.read("shop"))[0]?.lastUpdated).not.toBe(first);
  });

  test("the resource that was paid for longest ago makes room", async () => {
    await db
      .$extendTables<DiscoveryTables>()
      .insertInto("resources")
      .values(
        Array.from({ length: mostResources }, (_, index) => ({
          organization_id: "shop",
          resource_key: `key ${index}`,
          document: JSON.stringify({
            resource: `https://${index}.example/`,
            type: "http",
            x402Version: 2,
            accepts: [],
          }),
          updated_at: time - mostResources + index,
        })),
      )
      .execute();
    await note("shop", "https://shop.example/new");
    const urls = await urlsOf("shop");
    expect(urls).toHaveLength(mostResources);
    expect(urls[0]).toBe("https://shop.example/new");
    expect(urls).not.toContain("https://0.example/");
  });

  test("a flood is noted in part, and a lost database does not affect the answer", async () => {
    await Promise.all(
      Array.from({ length: 100 }, (_, index) => note("shop", `https://shop.example/${index}`)),
    );
    const noted = await urlsOf("shop");
    expect(noted.length).toBeGreaterThan(0);
    expect(noted.length).toBeLessThan(100);
    await db.destroy();
    await note("shop", "https://shop.example/later");
    expect(warnings).toHaveLength(1);
  });
});
