import { expect, test } from "vitest";
import { type PaymentSpec, signPayment } from "../../../src/harness/control/pay.ts";
import type { WarningCode } from "../../../src/protocol/strictness.ts";
import { requestJson } from "../../../src/util/http-client.ts";
import { runHere } from "../../support/run-here.ts";
import { type Body, startTestHarness } from "../../support/service.ts";
import { soon, useStudio, useStudioPage } from "../../support/studio.ts";

/* Warnings of good payments: in the answers, in `x402-kit why`, and in the studio. */

const studio = useStudio();
const shown = useStudioPage(studio);

type Change = { spec?: Partial<PaymentSpec>; change(body: Body): void };

const expired: Change = {
  spec: { method: "permit2", approval: true },
  change: ({ paymentPayload }) => (paymentPayload.extensions.eip2612GasSponsoring.info.deadline = "1000"),
};

const changes: Readonly<Record<Exclude<WarningCode, "identifier_ignored">, Change>> = {
  short_form: {
    spec: { x402Version: 1 },
    change({ paymentRequirements: terms }) {
      terms.amount = terms.maxAmountRequired;
      delete terms.maxAmountRequired;
    },
  },
  extra_incomplete: { change: ({ paymentRequirements }) => delete paymentRequirements.extra },
  extra_differs: { change: ({ paymentRequirements }) => (paymentRequirements.extra.name = "Another") },
  address_case: {
    change({ paymentPayload: { payload } }) {
      const digits = payload.authorization.from.slice(2);
      const swap = (one: string) => (one === one.toLowerCase() ? one.toUpperCase() : one.toLowerCase());
      payload.authorization.from = `0x${digits.replace(/[a-f]/i, swap)}`;
    },
  },
  signature_v: {
    change({ paymentPayload: { payload } }) {
      payload.signature = payload.signature.replace(/1[bc]$/, (v: string) => (v === "1b" ? "00" : "01"));
    },
  },
  approval_expired: expired,
};

/** Verifies and settles a changed payment. */
async function send(
  { description }: typeof studio.harness,
  { spec, change }: Change,
): Promise<{ verify: object; settle: object }> {
  const { request } = await signPayment(description, { network: "base", ...spec });
  const body = JSON.parse(JSON.stringify(request));
  change(body);
  const headers = { authorization: description.organization.apiKey };
  const ask = async (operation: string) =>
    Object(
      (await requestJson(`${description.facilitator.url}/${operation}`, { method: "POST", headers, body }))
        .body,
    );
  return { verify: await ask("verify"), settle: await ask("settle") };
}

test.each(Object.entries(changes))("%s is shown in every place", async (code, one) => {
  const warnings = [{ code, at: expect.any(String), message: expect.any(String) }];
  const { verify, settle } = await send(studio.harness, one);
  expect(verify).toMatchObject({ isValid: true, warnings });
  expect(settle).toMatchObject({ success: true, warnings });

  const [payment] = await studio.list();
  const { timeline } = await studio.detailOf(payment?.id);
  const warned = timeline.filter(({ details }) => `${details.warning}`.startsWith(`${code}: `));
  expect(warned.map(({ title }) => title)).toEqual(["verify: valid", "settle: settled"]);
  expect((await runHere(["why", "--url", studio.origin])).stdout).toContain(`warning=${code}: `);

  await shown.rows().first().click();
  const record = shown.page.getByRole("region", { name: "Record" });
  await expect.poll(() => record.textContent(), soon).toContain(`warning${code}: `);
});

test("a payment without anything odd has no warning", async () => {
  const { verify, settle } = await send(studio.harness, { change() {} });
  expect([verify, settle].map((answer) => Reflect.get(answer, "warnings"))).toEqual([undefined, undefined]);
});

test("with STRICTNESS=reference they are refused, but for an identifier that the shop does not require", async () => {
  const up = await startTestHarness({
    ...{ networks: ["base"], open: { onClose() {} }, payTo: "any", strictness: "reference" },
  });
  try {
    for (const [code, one] of Object.entries(changes)) {
      const { verify, settle } = await send(up, one);
      const situation = code === "approval_expired" ? { situation: code } : {};
      expect({ code, verify }).toMatchObject({ code, verify: { isValid: false, ...situation } });
      expect({ code, settle }).toMatchObject({ code, settle: { success: false, ...situation } });
    }
    const { verify, settle } = await send(up, {
      spec: { x402Version: 2 },
      change({ paymentPayload }) {
        paymentPayload.extensions = { "payment-identifier": { info: { required: false, id: "short" } } };
      },
    });
    const warnings = [{ code: "identifier_ignored" }];
    expect(verify).toMatchObject({ isValid: true, warnings });
    expect(settle).toMatchObject({ success: true, warnings });
  } finally {
    await up.close();
  }
});
