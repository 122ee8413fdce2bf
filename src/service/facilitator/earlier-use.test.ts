import { expect, test } from "vitest";
import { paymentBody } from "../../../test/support/http/stub-app.ts";
import { refusals } from "../../protocol/refusals.ts";
import { parsePaymentRequest } from "../../protocol/requests.ts";
import type { FacilitatorContext } from "./context.ts";
import { refuseWithUse } from "./earlier-use.ts";

const parsed = parsePaymentRequest(paymentBody());
if (!parsed.ok) throw new Error("the payment cannot be read");
const { request } = parsed;
const refusal = refusals.valueDiffers(10_000n, 20_000n, undefined);

/** Networks of which nothing is asked but whether an authorization was used. */
function networksThat(isAuthorizationUsed: () => Promise<boolean>): FacilitatorContext["networks"] {
  const chain = { endpoints: () => [{ isAuthorizationUsed }] };
  const networks: unknown = new Map([[request.knownNetwork.name, [{ chain }]]]);
  return networks as FacilitatorContext["networks"];
}

const unasked = () => Promise.reject(new Error("asked"));

test("a payment that another request is about to claim is not to be signed again", async () => {
  const ledger = { findLease: async () => ({ isOwn: false, expiresAt: 0 }), find: async () => null };
  const context = { ledger, networks: networksThat(unasked) };
  expect(await refuseWithUse(context, refusal, request, "org_local")).toMatchObject({
    reason: refusal.reason,
    situation: "under_way",
  });
});

test("the lease is asked for before the settlement, which would be missed between the two otherwise, and then the chain", async () => {
  const asked: string[] = [];
  const ledger = {
    findLease: async () => {
      asked.push("lease");
      return null;
    },
    find: async () => {
      asked.push("settlement");
      return null;
    },
  };
  const networks = networksThat(async () => {
    asked.push("chain");
    return false;
  });
  expect(await refuseWithUse({ ledger, networks }, refusal, request, "org_local")).toBe(refusal);
  expect(asked).toEqual(["lease", "settlement", "chain"]);
});

test("a refusal by which nobody signs again asks neither ledger nor chain", async () => {
  const context = { ledger: { findLease: unasked, find: unasked }, networks: networksThat(unasked) };
  const paused = refusals.assetPaused();
  expect(await refuseWithUse(context, paused, request, undefined)).toBe(paused);
});

test("a fault of the program is not taken for a chain that cannot be asked", async () => {
  const ledger = { findLease: async () => null, find: async () => null };
  const context = { ledger, networks: networksThat(unasked) };
  await expect(refuseWithUse(context, refusal, request, undefined)).rejects.toThrow("asked");
});
