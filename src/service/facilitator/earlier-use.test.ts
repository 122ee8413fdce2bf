import { expect, test } from "vitest";
import { paymentBody } from "../../../test/support/http/stub-app.ts";
import { parsePaymentRequest } from "../../methods/methods.ts";
import { refusals, refuseUntold, refuseUsedOnChain } from "../../protocol/refusals.ts";
import { UndeterminedError } from "../../util/errors.ts";
import type { FacilitatorContext } from "./context.ts";
import { refuseWithUse, refuseWithUseOnChain } from "./earlier-use.ts";

const parsed = parsePaymentRequest(paymentBody());
if (!parsed.ok) throw new Error("the payment cannot be read");
const { request } = parsed;
const refusal = refusals.valueDiffers(10_000n, 20_000n, undefined, request.words);

/** Networks of which nothing is asked but whether an authorization was used, of one endpoint after the other. */
function chainThat(
  ...endpoints: readonly (() => Promise<boolean>)[]
): Pick<FacilitatorContext, "networks" | "ways"> {
  const views = endpoints.map((isUsed, index) => ({ endpoint: `${index + 1}`, isUsed }));
  const chain = { network: { assets: [request.knownNetwork.usdc] }, endpoints: () => views };
  const networks: unknown = new Map([[request.knownNetwork.name, [{ chain }]]]);
  const ways: unknown = {
    settlingOf: () => ({ isUsed: ({ isUsed }: (typeof views)[number]) => isUsed() }),
  };
  return { networks: networks as FacilitatorContext["networks"], ways: ways as FacilitatorContext["ways"] };
}

const unasked = () => Promise.reject(new Error("asked"));

test("a payment that another request is about to claim is not to be signed again", async () => {
  const ledger = {
    leases: { findLease: async () => ({ isOwn: false, expiresAt: 0 }) },
    claims: { find: async () => null },
  };
  const context = { ledger, ...chainThat(unasked) };
  expect(await refuseWithUse(context, refusal, request, "org_local")).toMatchObject({
    reason: refusal.reason,
    situation: "under_way",
  });
});

test("the lease is asked for before the settlement, which would be missed between the two otherwise, and then the chain", async () => {
  const asked: string[] = [];
  const ledger = {
    leases: {
      findLease: async () => {
        asked.push("lease");
        return null;
      },
    },
    claims: {
      find: async () => {
        asked.push("settlement");
        return null;
      },
    },
  };
  const chain = chainThat(async () => {
    asked.push("chain");
    return false;
  });
  expect(await refuseWithUse({ ledger, ...chain }, refusal, request, "org_local")).toBe(refusal);
  expect(asked).toEqual(["lease", "settlement", "chain"]);
});

test("a refusal by which nobody signs again asks neither ledger nor chain", async () => {
  const ledger = { leases: { findLease: unasked }, claims: { find: unasked } };
  const context = { ledger, ...chainThat(unasked) };
  const paused = refusals.assetPaused();
  expect(await refuseWithUse(context, paused, request, undefined)).toBe(paused);
});

test("the chain is not asked about a token that is not served: it may be no token", async () => {
  const foreign = { ...request, payment: { ...request.payment, asset: request.payment.payer } };
  expect(await refuseWithUseOnChain(chainThat(unasked), refusal, foreign)).toBe(refusal);
});

test("a fault of the program is not taken for a chain that cannot be asked", async () => {
  const ledger = { leases: { findLease: async () => null }, claims: { find: async () => null } };
  const context = { ledger, ...chainThat(unasked) };
  await expect(refuseWithUse(context, refusal, request, undefined)).rejects.toThrow("asked");
});

const answers = {
  used: async () => true,
  unused: async () => false,
  silent: () => Promise.reject(new UndeterminedError("no answer")),
};

test.each<{ endpoints: (keyof typeof answers)[]; is: "used" | "unused" | "untold"; asked: number }>([
  { endpoints: ["used"], is: "used", asked: 1 },
  { endpoints: ["unused"], is: "unused", asked: 1 },
  { endpoints: ["silent"], is: "untold", asked: 1 },
  { endpoints: ["used", "unused"], is: "used", asked: 1 },
  { endpoints: ["unused", "used"], is: "used", asked: 2 },
  { endpoints: ["unused", "unused"], is: "unused", asked: 2 },
  { endpoints: ["silent", "used"], is: "used", asked: 2 },
  { endpoints: ["silent", "unused"], is: "unused", asked: 2 },
  { endpoints: ["unused", "silent"], is: "unused", asked: 2 },
  { endpoints: ["silent", "silent"], is: "untold", asked: 2 },
  { endpoints: ["unused", "unused", "used"], is: "unused", asked: 2 },
  { endpoints: ["silent", "unused", "used"], is: "used", asked: 3 },
])("an authorization that endpoints call $endpoints is $is", async ({ endpoints, is, asked }) => {
  let count = 0;
  const chain = chainThat(
    ...endpoints.map((answer) => () => {
      count++;
      return answers[answer]();
    }),
  );
  const refused = { used: refuseUsedOnChain(refusal), unused: refusal, untold: refuseUntold(refusal) };
  expect(await refuseWithUseOnChain(chain, refusal, request)).toEqual(refused[is]);
  expect(count).toBe(asked);
});
