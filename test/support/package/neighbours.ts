import type { Address, Chain, Hex, PublicClient, TestClient, Transport, WalletClient } from "viem";
import { createPublicClient, createTestClient, http } from "viem";
import { expectTypeOf } from "vitest";
import type { Harness, HarnessNetwork } from "../../../src/harness/index.ts";

/*
 * Checks the types of the harness in a project that uses viem and has its own types. It is compiled here, and again in
 * projects that have installed the package next to other versions of viem.
 */

declare const harness: Harness<"base" | "polygon">;

/** A project's own helpers, which do not refer to the harness. */
declare function readAsProject(client: PublicClient): void;
declare function writeAsProject(client: WalletClient<Transport, Chain>): void;
declare function mineAsProject(
  client: TestClient<"anvil", Transport, Chain | undefined, undefined, false>,
): void;

export async function meetNeighbours(): Promise<void> {
  const { base } = harness.networks;
  readAsProject(base.client);
  writeAsProject(base.client);
  mineAsProject(base.client);
  readAsProject(createPublicClient({ chain: base.client.chain, transport: http(base.rpcUrl) }));
  createTestClient({ mode: "anvil", chain: base.client.chain, transport: http(base.rpcUrl) });
  let own: PublicClient = createPublicClient({ transport: http(base.rpcUrl) });
  own = base.client;
  own.uid satisfies string;

  expectTypeOf(base.name).toEqualTypeOf<"base">();
  expectTypeOf(base.caip2).toEqualTypeOf<`eip155:${number}`>();
  expectTypeOf(base.asset.address).toEqualTypeOf<Address>();
  expectTypeOf(harness.organization.recipient).toEqualTypeOf<Address>();
  expectTypeOf(harness.networks).toHaveProperty("polygon");
  expectTypeOf(harness.networks).not.toHaveProperty("optimism");
  expectTypeOf<HarnessNetwork<"polygon">["name"]>().toEqualTypeOf<"polygon">();

  const { verify, settle, receipt, settlementId } = await harness.pay({ network: "base" });
  expectTypeOf(settlementId).toEqualTypeOf<Hex>();
  expectTypeOf(receipt).toEqualTypeOf<Awaited<ReturnType<PublicClient["getTransactionReceipt"]>> | null>();
  if (settle.body.success) {
    expectTypeOf(settle.body.transaction).toEqualTypeOf<Hex | "">();
    expectTypeOf(settle.body.errorReason).toEqualTypeOf<undefined>();
    if (settle.body.transaction !== "") await own.getTransactionReceipt({ hash: settle.body.transaction });
  } else {
    expectTypeOf(settle.body.transaction).toEqualTypeOf<Hex | "" | undefined>();
    expectTypeOf<"insufficient_funds">().toExtend<typeof settle.body.errorReason>();
    expectTypeOf<"no_such_reason">().not.toExtend<typeof settle.body.errorReason>();
  }
  if (verify.body.isValid) {
    expectTypeOf(verify.body.invalidReason).toEqualTypeOf<undefined>();
    expectTypeOf(verify.body.authContext.organizationId).toEqualTypeOf<string>();
  } else if (!("title" in verify.body)) {
    // It is a verdict, so these members exist.
    expectTypeOf(verify.body.invalidMessage).toEqualTypeOf<string>();
  }
  // Before the union is narrowed.
  expectTypeOf<undefined>().toExtend<typeof settle.body.errorReason>();
  expectTypeOf<undefined>().toExtend<typeof verify.body.invalidReason>();
}
