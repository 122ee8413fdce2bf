import fc from "fast-check";
import { buildBody } from "../../src/methods/build-request.ts";
import { buildPaymentRequest } from "../../src/methods/exact-eip3009/eip3009-method.ts";
import { exactProxyAddress, type Permit, uptoProxyAddress } from "../../src/methods/permit2/permit.ts";
import { writePermitPayload } from "../../src/methods/permit2/permit2-payload.ts";
import type { Address, Hex } from "../../src/protocol/hex.ts";
import { networks } from "../../src/protocol/networks.ts";

/** The facilitator contract in the bodies. */
export const namedContract: Address = "0x00000000000000000000000000000000000000F0";

/** Well-formed bodies for verify and settle: in both versions, in version 1's short form, and by Permit2. */
export function wellFormedBodies(
  signature: Hex = `0x${"02".repeat(65)}`,
): readonly Record<string, unknown>[] {
  const [v1, v2] = ([1, 2] as const).map((x402Version) =>
    buildPaymentRequest({
      x402Version,
      network: networks.base,
      asset: networks.base.usdc,
      payTo: namedContract,
      amount: 10_000n,
      resource: "https://shop.example/report",
      authorization: {
        from: "0x857b06519E91e3A54538791bDbb0E22373e36b66",
        to: namedContract,
        value: 10_000n,
        validAfter: 0n,
        validBefore: 2_000_000_000n,
        nonce: `0x${"01".repeat(32)}`,
      },
      signature,
    }),
  );
  const short = { network: "base", amount: "10000", asset: networks.base.usdc.address };
  return [
    { ...v1 },
    { ...v2 },
    { ...v1, paymentRequirements: short },
    permitBody("exact", signature),
    permitBody("upto", signature),
  ];
}

/** A version 2 body that is paid by Permit2. */
export function permitBody(
  scheme: "exact" | "upto",
  signature: Hex,
  from: Address = "0x857b06519E91e3A54538791bDbb0E22373e36b66",
): Record<string, unknown> {
  const { usdc } = networks.base;
  const permit: Permit = {
    ...{ from, token: usdc.address, amount: 10_000n, nonce: 7n, to: namedContract },
    ...{ spender: scheme === "upto" ? uptoProxyAddress : exactProxyAddress, validAfter: 0n },
    deadline: 2_000_000_000n,
    ...(scheme === "upto" && { facilitator: namedContract }),
  };
  const parts = {
    ...{ x402Version: 2 as const, network: networks.base, asset: usdc, payTo: namedContract, scheme },
    ...{ amount: 10_000n, resource: "https://shop.example/report" },
    extra: { assetTransferMethod: "permit2", facilitatorAddress: namedContract },
  };
  return buildBody(parts, writePermitPayload(permit, signature));
}

/** Names of members, including some that no request has. */
const keys = [
  ...["paymentPayload", "paymentRequirements", "x402Version", "accepted", "payload", "scheme", "network"],
  ...["authorization", "signature", "from", "to", "value", "validAfter", "validBefore", "nonce", "amount"],
  ...["maxAmountRequired", "payTo", "recipient", "asset", "maxTimeoutSeconds", "resource", "description"],
  ...["mimeType", "extra", "toString", "constructor"],
  ...["permit2Authorization", "permitted", "token", "spender", "deadline", "witness", "facilitator"],
];

const values = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.constantFrom<unknown>(
      ...[1, 2, "1", "exact", "upto", "base", "polygon", "eip155:8453", "10000", "10001", "007", "", "0x"],
      ...[
        "0xabc",
        namedContract,
        namedContract.toLowerCase(),
        `0x${"00".repeat(32)}`,
        `0x${"ab".repeat(5_000)}`,
      ],
      ...[(2n ** 256n).toString(), undefined, undefined, undefined, null, true, -1, 60, 1.5, [], {}, [{}]],
    ),
  },
  { weight: 1, arbitrary: fc.jsonValue() },
);

type Change = { object: number; ownKey: number | undefined; key: string; value: unknown };

const changes: fc.Arbitrary<readonly Change[]> = fc.array(
  fc.record({
    object: fc.nat(20),
    ownKey: fc.option(fc.nat(20), { nil: undefined, freq: 3 }),
    key: fc.constantFrom(...keys),
    value: values,
  }),
  { maxLength: 4 },
);

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

/** An object and every object in it. */
function objectsIn(value: unknown): Record<string, unknown>[] {
  return isRecord(value) ? [value, ...Object.values(value).flatMap(objectsIn)] : [];
}

function applyChanges(body: Record<string, unknown>, list: readonly Change[]): unknown {
  const changed = structuredClone(body);
  for (const { object, ownKey, key, value } of list) {
    const objects = objectsIn(changed);
    const place = objects[object % objects.length] ?? changed;
    const own = Object.keys(place);
    const name = (ownKey === undefined ? undefined : own[ownKey % own.length]) ?? key;
    if (value === undefined) delete place[name];
    else place[name] = structuredClone(value);
  }
  return changed;
}

/** Bodies for verify and settle: mostly almost right, sometimes arbitrary JSON. */
export function generatedBodies(wellFormed = wellFormedBodies()): fc.Arbitrary<unknown> {
  return fc.oneof(
    {
      weight: 9,
      arbitrary: fc
        .tuple(fc.constantFrom(...wellFormed), changes)
        .map(([body, list]) => applyChanges(body, list)),
    },
    { weight: 1, arbitrary: fc.jsonValue() },
  );
}
