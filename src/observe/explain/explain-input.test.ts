import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { buildBody } from "../../methods/build-request.ts";
import { digestUnder } from "../../methods/eip712.ts";
import {
  type AuthorizationTerms,
  signAuthorization,
  transferWithAuthorizationTypes,
} from "../../methods/exact-eip3009/authorization.ts";
import { buildPaymentRequest } from "../../methods/exact-eip3009/eip3009-method.ts";
import { parsePaymentRequest } from "../../methods/methods.ts";
import { permit2Separator, permitHash, uptoProxyAddress } from "../../methods/permit2/permit.ts";
import { permitOf, writePermitPayload } from "../../methods/permit2/permit2-payload.ts";
import { type PermitTerms, signPermit } from "../../methods/permit2/sign-permit.ts";
import { testPayers } from "../../payer/test-payers.ts";
import { reasonTexts, withLocal } from "../../protocol/catalogue-texts.ts";
import type { Address } from "../../protocol/hex.ts";
import { type MistakeId, mistakes } from "../../protocol/mistakes.ts";
import { type BuiltInNetworkName, networks } from "../../protocol/networks.ts";
import { refusals } from "../../protocol/refusals.ts";
import type { X402Version } from "../../protocol/requests.ts";
import type { PayToPolicy } from "../../protocol/signed-payment.ts";
import { type Explanation, explain } from "./explain-input.ts";
import { explanationOf, formatExplanations } from "./explanations.ts";

/** An explanation as text for a terminal. */
const formatExplanation = ({ findings, ...about }: Explanation) =>
  formatExplanations(findings.map(explanationOf), about);

const contracts = {
  mainnet: "0x4020000000000000000000000000000000000001",
  testnet: "0x4020000000000000000000000000000000000002",
} as const;
const merchant: Address = "0x857b06519E91e3A54538791bDbb0E22373e36b66";
const now = 1_763_776_000n;
const payer = privateKeyToAccount(testPayers.funded.privateKey);

type Body = {
  paymentPayload: Record<string, unknown> & {
    payload: { signature: string; authorization: Record<string, string> };
  };
  paymentRequirements: Record<string, unknown>;
};

/** A good payment, unless it is signed for something else. */
async function payment(
  terms: Partial<AuthorizationTerms> = {},
  { network = "base", x402Version = 1 }: { network?: BuiltInNetworkName; x402Version?: X402Version } = {},
): Promise<Body> {
  const { usdc, chainId, tier } = networks[network];
  const signed = await signAuthorization(payer, {
    asset: usdc,
    chainId,
    to: contracts[tier],
    value: 10_000n,
    validBefore: now + 60n,
    ...terms,
  });
  const body: unknown = buildPaymentRequest({
    x402Version,
    network: networks[network],
    asset: usdc,
    payTo: contracts[tier],
    amount: 10_000n,
    resource: "https://merchant.example/report",
    ...signed,
  });
  return body as Body;
}

/** A good payment by Permit2, of scheme “upto” where the terms name a facilitator, unless it is signed for something else. */
async function permitted(
  { change, ...terms }: Partial<PermitTerms> & { change?: (permit: Record<string, unknown>) => void } = {},
  requirements: Record<string, unknown> = {},
): Promise<Body> {
  const { usdc, chainId } = networks.base;
  const payTo = contracts.mainnet;
  const signed = await signPermit(payer, {
    ...{ chainId, token: usdc.address, amount: 10_000n, to: payTo, deadline: now + 60n },
    ...terms,
  });
  const isUpto = terms.facilitator !== undefined;
  const parts = {
    ...{ x402Version: 2 as const, network: networks.base, asset: usdc, payTo, amount: 10_000n },
    resource: "https://merchant.example/report",
    scheme: isUpto ? ("upto" as const) : ("exact" as const),
    extra: { assetTransferMethod: "permit2", ...(isUpto && { facilitatorAddress: payTo }) },
  };
  const written: unknown = buildBody(parts, writePermitPayload(signed.permit, signed.signature));
  const body = written as Body;
  const { permit2Authorization } = body.paymentPayload.payload as Record<string, unknown>;
  change?.(permit2Authorization as Record<string, unknown>);
  Object.assign(body.paymentRequirements, requirements);
  return body;
}

function explained(body: unknown, payTo?: PayToPolicy) {
  return explain(typeof body === "string" ? body : JSON.stringify(body), { contracts, now, payTo }).findings;
}

/** The body with something changed after it was signed. */
async function changed(change: (body: Body) => void, ...given: Parameters<typeof payment>): Promise<Body> {
  const body = structuredClone(await payment(...given));
  change(body);
  return body;
}

test.each([1, 2] as const)("nothing is found in a good payment of version %i", async (x402Version) => {
  expect(explained(await payment({}, { x402Version }))).toEqual([]);
  expect(explained(await payment({}, { x402Version, network: "base-sepolia" }))).toEqual([]);
});

test.each([
  ["exact", {}],
  ["upto", { facilitator: contracts.mainnet }],
] as const)(
  "nothing is found in a good payment and a good offer of scheme %s by Permit2",
  async (_, terms) => {
    const body = await permitted(terms);
    expect(explained(body)).toEqual([]);
    expect(explained(body.paymentPayload)).toEqual([]);
    expect(explained({ x402Version: 2, error: "", accepts: [body.paymentRequirements] })).toEqual([]);
    // The last second in which it is valid, less those that are needed to settle, and the first one.
    expect(explained(await permitted({ ...terms, deadline: now + 6n, validAfter: now }))).toEqual([]);
  },
);

test("of scheme upto less than was signed may be asked for, nothing too, and not more", async () => {
  const terms = { facilitator: contracts.mainnet };
  for (const amount of ["0", "1", "10000"]) expect(explained(await permitted(terms, { amount }))).toEqual([]);
  expect(explained(await permitted(terms, { amount: "10001" }))).toMatchObject([
    { situation: "amount_above_maximum" },
  ]);
});

describe("what a developer got wrong is named", () => {
  type Case = readonly [string, MistakeId, string, () => unknown, PayToPolicy?];
  const cases: readonly Case[] = [
    ["text", "not-json", "", () => "not a payment at all"],
    ["the error of a client", "client-error", "", () => "Error: Payment amount exceeds maximum allowed"],
    [
      "a body that was written as JSON twice",
      "text-of-json",
      "",
      async () => JSON.stringify(JSON.stringify(await payment())),
    ],
    [
      "a name as Python writes it",
      "other-name",
      "paymentRequirements",
      async () => {
        const { paymentRequirements, ...others } = await payment();
        return { ...others, payment_requirements: paymentRequirements };
      },
    ],
    [
      "a permit that was signed as a message",
      "signed-as-message",
      "paymentPayload.payload.signature",
      async () => {
        const body = await permitted();
        const reading = parsePaymentRequest(body);
        if (!reading.ok) throw new Error(reading.invalid.message);
        const raw = digestUnder(permit2Separator(8_453), permitHash(permitOf(reading.request.payment)));
        body.paymentPayload.payload.signature = await payer.signMessage({ message: { raw } });
        return body;
      },
    ],
    [
      "a message signed in place of typed data",
      "signed-as-message",
      "paymentPayload.payload.signature",
      async () => {
        const body = await payment();
        const message = JSON.stringify(body.paymentPayload.payload.authorization);
        body.paymentPayload.payload.signature = await payer.signMessage({ message });
        return body;
      },
    ],
    ["other JSON", "unknown-shape", "", () => ({ hello: "world" })],
    [
      "a header as it came",
      "not-decoded",
      "paymentPayload",
      async () => {
        const body = await payment();
        return {
          ...body,
          paymentPayload: Buffer.from(JSON.stringify(body.paymentPayload)).toString("base64"),
        };
      },
    ],
    [
      "a header encoded twice",
      "encoded-twice",
      "",
      async () => {
        const once = Buffer.from(JSON.stringify((await payment()).paymentPayload)).toString("base64");
        return Buffer.from(once).toString("base64");
      },
    ],
    [
      "v1 members under version 2",
      "wrong-version",
      "paymentPayload.x402Version",
      () =>
        changed((body) => {
          body.paymentPayload.x402Version = 2;
        }),
    ],
    [
      "a CAIP-2 name in version 1",
      "wrong-version",
      "paymentPayload.network",
      () =>
        changed((body) => {
          body.paymentPayload.network = "eip155:8453";
        }),
    ],
    [
      "a network that does not exist",
      "unknown-network",
      "paymentRequirements.network",
      () =>
        changed((body) => {
          body.paymentRequirements.network = "base-mainnet";
        }),
    ],
    [
      "two networks",
      "networks-differ",
      "paymentRequirements.network",
      () =>
        changed((body) => {
          body.paymentRequirements.network = "polygon";
        }),
    ],
    [
      "the merchant's wallet as payTo",
      "pay-to-not-accepted",
      "paymentRequirements.payTo",
      () =>
        changed((body) => {
          body.paymentRequirements.payTo = merchant;
        }),
    ],
    [
      "the contract of the other tier",
      "other-tier",
      "paymentRequirements.payTo",
      () =>
        changed((body) => {
          body.paymentRequirements.payTo = contracts.testnet;
        }),
    ],
    [
      "signed for the merchant's wallet",
      "signed-for-another-recipient",
      "authorization.to",
      () => payment({ to: merchant }),
    ],
    [
      "USDC of another network",
      "wrong-asset",
      "paymentRequirements.asset",
      () =>
        changed((body) => {
          body.paymentRequirements.asset = networks.polygon.usdc.address;
        }),
    ],
    [
      "a price in dollars",
      "amount-in-dollars",
      "paymentRequirements.maxAmountRequired",
      () =>
        changed((body) => {
          body.paymentRequirements.maxAmountRequired = "$0.01";
        }),
    ],
    [
      "a price of nothing",
      "amount-zero",
      "paymentRequirements.maxAmountRequired",
      () =>
        changed((body) => {
          body.paymentRequirements.maxAmountRequired = "0";
        }),
    ],
    [
      "a number of 81 digits",
      "number-too-large",
      "paymentRequirements.maxAmountRequired",
      () =>
        changed((body) => {
          body.paymentRequirements.maxAmountRequired = `1${"0".repeat(80)}`;
        }),
    ],
    [
      "an amount a million times too large",
      "amount-off-by-decimals",
      "authorization.value",
      () => payment({ value: 10_000_000_000n }),
    ],
    [
      "another version beside the payment",
      "outer-version-differs",
      "x402Version",
      async () => ({ ...(await payment()), x402Version: 2 }),
    ],
    [
      "a payTo with a mistyped digit",
      "bad-checksum",
      "paymentRequirements.payTo",
      () =>
        changed((body) => {
          body.paymentRequirements.payTo = `${merchant.slice(0, -1)}7`;
        }),
      "any",
    ],
    [
      "the zero address as payTo",
      "pay-to-nobody",
      "paymentRequirements.payTo",
      () =>
        changed((body) => {
          body.paymentRequirements.payTo = `0x${"0".repeat(40)}`;
        }),
      "any",
    ],
    ["a payer who pays to itself", "pays-itself", "authorization.from", () => payment({ to: payer.address })],
    ["another amount", "amount-differs", "authorization.value", () => payment({ value: 12_345n })],
    [
      "a number where a string belongs",
      "missing-member",
      "authorization.value",
      () =>
        changed((body) => {
          Object.assign(body.paymentPayload.payload.authorization, { value: 10_000 });
        }),
    ],
    [
      "milliseconds",
      "times-in-milliseconds",
      "authorization.validBefore",
      () => payment({ validBefore: (now + 60n) * 1000n }),
    ],
    ["expired", "expired", "authorization.validBefore", () => payment({ validBefore: now - 12n })],
    [
      "a scheme of version 2 in version 1",
      "unknown-scheme",
      "paymentRequirements.scheme",
      async () => {
        const body = await payment();
        return { ...body, paymentRequirements: { ...Object(body.paymentRequirements), scheme: "upto" } };
      },
    ],
    [
      "a time that is days ahead",
      "valid-too-long",
      "authorization.validBefore",
      () => payment({ validBefore: now + 100_000n }),
    ],
    [
      "a clock that is ahead",
      "not-valid-yet",
      "authorization.validAfter",
      () => payment({ validAfter: now + 90n }),
    ],
    [
      "the Sepolia name on base",
      "signed-with-another-domain",
      "paymentPayload.payload.signature",
      () => payment({ asset: { ...networks.base.usdc, name: "USDC" } }),
    ],
    [
      "version 1 of the domain",
      "signed-with-another-domain",
      "paymentPayload.payload.signature",
      () => payment({ asset: { ...networks.base.usdc, version: "1" } }),
    ],
    [
      "another chain id",
      "signed-with-another-domain",
      "paymentPayload.payload.signature",
      () => payment({ chainId: 10 }),
    ],
    [
      "another token",
      "signed-with-another-domain",
      "paymentPayload.payload.signature",
      () => payment({ asset: networks.optimism.usdc }),
    ],
    [
      "a member changed after signing",
      "signed-other-values",
      "authorization.validAfter",
      () =>
        changed((body) => {
          body.paymentPayload.payload.authorization.validAfter = "600";
        }),
    ],
    [
      "ReceiveWithAuthorization",
      "signed-receive",
      "paymentPayload.payload.signature",
      () =>
        changed(() => {}, {}).then(async (body) => {
          const { usdc, chainId } = networks.base;
          const { from, to, value, validAfter, validBefore, nonce } = body.paymentPayload.payload
            .authorization as Record<string, `0x${string}`>;
          body.paymentPayload.payload.signature = await payer.signTypedData({
            domain: { name: usdc.name, version: usdc.version, chainId, verifyingContract: usdc.address },
            types: { ReceiveWithAuthorization: transferWithAuthorizationTypes.TransferWithAuthorization },
            primaryType: "ReceiveWithAuthorization",
            message: {
              from: from ?? "0x",
              to: to ?? "0x",
              value: BigInt(value ?? 0),
              validAfter: BigInt(validAfter ?? 0),
              validBefore: BigInt(validBefore ?? 0),
              nonce: nonce ?? "0x",
            },
          });
          return body;
        }),
    ],
    [
      "another key",
      "signed-by-another-key",
      "paymentPayload.payload.signature",
      () =>
        changed((body) => {
          body.paymentPayload.payload.authorization.from = merchant;
        }),
    ],
    [
      "a compact signature",
      "malformed-signature",
      "paymentPayload.payload.signature",
      () =>
        changed((body) => {
          body.paymentPayload.payload.signature = body.paymentPayload.payload.signature.slice(0, 130);
        }),
    ],
    [
      "an undeployed wallet",
      "undeployed-wallet",
      "paymentPayload.payload.signature",
      () =>
        changed((body) => {
          body.paymentPayload.payload.signature += "6492".repeat(16);
        }),
    ],
    [
      "requirements that name version 1 of the token, for which a client has signed",
      "extra-differs",
      "paymentRequirements.extra",
      () =>
        payment({ asset: { ...networks.base.usdc, version: "1" } }).then((body) => {
          body.paymentRequirements.extra = { name: "USD Coin", version: "1" };
          return body;
        }),
    ],
    [
      "requirements that do not name the token, of a payment that is good here",
      "extra-needed-elsewhere",
      "paymentRequirements.extra",
      () =>
        changed((body) => {
          body.paymentRequirements.extra = undefined;
        }),
    ],
    ...(
      [
        ["the token's Sepolia name", { extra: { name: "USDC", version: "2" } }, "extra-differs", "extra"],
        ["no name of the token", { extra: undefined }, "extra-differs", "extra"],
        ["too little time", { maxTimeoutSeconds: 5 }, "timeout-out-of-range", "maxTimeoutSeconds"],
        ["months", { maxTimeoutSeconds: 10_000_000 }, "timeout-out-of-range", "maxTimeoutSeconds"],
        [
          "ten billion USDC",
          { maxAmountRequired: `1${"0".repeat(16)}` },
          "amount-off-by-decimals",
          "maxAmountRequired",
        ],
      ] as const
    ).map(
      ([name, change, mistake, member]): Case => [
        `an offer with ${name}`,
        mistake,
        `accepts[0].${member}`,
        async () => ({
          x402Version: 1,
          error: "",
          accepts: [{ ...(await payment()).paymentRequirements, ...change }],
        }),
      ],
    ),
    ...(
      [
        [
          "for the domain of another chain",
          { chainId: 10 },
          "permit-domain",
          "paymentPayload.payload.signature",
        ],
        [
          "for the facilitator as spender",
          { spender: merchant },
          "permit-spender",
          "permit2Authorization.spender",
        ],
        [
          "with the proxy of the other scheme as spender that was sent",
          { change: (permit) => Object.assign(permit, { spender: uptoProxyAddress }) },
          "permit-spender",
          "permit2Authorization.spender",
        ],
        [
          "with nonce and deadline in each other's place",
          {
            change: (permit) => {
              const { nonce, deadline } = permit;
              Object.assign(permit, { nonce: deadline, deadline: nonce });
            },
          },
          "permit-witness",
          "paymentPayload.payload.signature",
        ],
        [
          "of another key",
          { change: (permit) => Object.assign(permit, { from: merchant }) },
          "permit-signer",
          "paymentPayload.payload.signature",
        ],
        [
          "for another token",
          { token: networks.optimism.usdc.address },
          "permit-token",
          "permit2Authorization.permitted.token",
        ],
        [
          "that another facilitator may submit",
          { facilitator: merchant },
          "permit-facilitator",
          "permit2Authorization.witness.facilitator",
        ],
        ["that has expired", { deadline: now - 1n }, "expired", "permit2Authorization.deadline"],
        [
          "that begins later",
          { validAfter: now + 9n },
          "not-valid-yet",
          "permit2Authorization.witness.validAfter",
        ],
        [
          "for another recipient",
          { to: merchant },
          "signed-for-another-recipient",
          "permit2Authorization.witness.to",
        ],
        [
          "for another amount",
          { amount: 12_345n },
          "amount-differs",
          "permit2Authorization.permitted.amount",
        ],
      ] as [string, Parameters<typeof permitted>[0], MistakeId, string][]
    ).map(([name, terms, mistake, at]): Case => [`a permit ${name}`, mistake, at, () => permitted(terms)]),
    [
      "a permit of scheme exact where upto is asked for",
      "schemes-differ",
      "paymentRequirements.scheme",
      () => permitted({}, { scheme: "upto" }),
    ],
    [
      "an offer of scheme upto without its facilitator",
      "permit-facilitator",
      "accepts[0].extra.facilitatorAddress",
      async () => {
        const { paymentRequirements } = await permitted({ facilitator: contracts.mainnet });
        return { x402Version: 2, error: "", accepts: [{ ...paymentRequirements, extra: {} }] };
      },
    ],
    [
      "a challenge that offers nothing",
      "missing-member",
      "accepts",
      () => ({ x402Version: 1, accepts: [], error: "" }),
    ],
    [
      "a challenge that offers nothing that is settled here",
      "nothing-accepted",
      "accepts",
      () => ({ x402Version: 2, accepts: [{ scheme: "other" }, { scheme: "another" }], error: "" }),
    ],
    [
      "a refusal",
      "refused",
      "invalidReason",
      () => ({ isValid: false, invalidReason: "insufficient_funds" }),
    ],
    [
      "an answer that decides nothing",
      "undetermined",
      "errorReason",
      () => ({ success: false, errorReason: "settlement_pending", transaction: "0x12" }),
    ],
  ];

  for (const [name, mistake, at, make, payTo] of cases) {
    test(name, async () => {
      const findings = explained(await make(), payTo);
      expect(findings.map((one) => [one.mistake, one.at])).toContainEqual([mistake, at]);
      for (const { fix } of findings) expect(fix).not.toBe("");
    });
  }

  test("every mistake of the table has a case", () => {
    // That an answer was lost is in no text: it is seen by the service.
    const found = cases.map(([, mistake]) => mistake);
    // Answers of shops have tests of their own: those of `x402-kit check` and of `up --shop`.
    const ofShops = [
      ...["not-encoded", "odd-base64", "no-challenge", "misplaced-challenge", "resource-differs"],
      ...["accepted-differs", "never-asked", "bad-receipt", "wrong-header"],
      ...["not-settled", "paid-not-served", "shop-down"],
      ...["headers-hidden", "above-usual-limit", "payment-not-seen"],
    ];
    expect(new Set([...found, ...ofShops, "answer-lost"])).toEqual(new Set(Object.keys(mistakes)));
  });
});

test.each([
  ["ahead", { validAfter: now + 90n }, "validAfter", "in 90 s)", `before ${now} (`],
  ["behind", { validBefore: now - 12n }, "validBefore", "12 s ago)", `at least ${now + 6n} (`],
  ["a little behind", { validBefore: now + 3n }, "validBefore", "in 3 s)", `at least ${now + 6n} (`],
] as const)(
  "a payer whose clock is %s is told by how many seconds",
  async (_, terms, member, got, expected) => {
    const explanation = explain(JSON.stringify(await payment(terms)), { contracts, now });
    const facts = { got: expect.stringContaining(got), expected: expect.stringContaining(expected) };
    expect(explanation.findings).toMatchObject([{ at: `authorization.${member}`, ...facts }]);
    expect(explanation.findings.map((one) => explanationOf(one).why)).toMatchObject([
      expect.stringContaining("clock"),
    ]);
    const text = formatExplanation(explanation);
    for (const said of [got, expected]) expect(text).toContain(said);
  },
);

test("an answer as curl prints it is read by the header of a payment, or else by its body", async () => {
  const { paymentRequirements: offer } = await payment({}, { x402Version: 2 });
  const wrong = { x402Version: 2, error: "", accepts: [{ ...offer, extra: {} }] };
  const header = Buffer.from(JSON.stringify(wrong)).toString("base64");
  const head = "HTTP/1.1 402 Payment Required\r\nContent-Type: application/json\r\n";
  for (const text of [
    `${head}PAYMENT-REQUIRED: ${header}\r\n\r\n{}`,
    `${head}payment-required: ${header}\r\n`,
    `${head}\r\n${JSON.stringify(wrong)}\n`,
  ]) {
    expect(explained(text).map(({ mistake }) => mistake)).toContain("extra-differs");
  }
});

describe("extra that does not name the token, beside a good signature", () => {
  const elsewhere = "extra-needed-elsewhere";
  const wrong = { name: "USDC", version: "1" };
  test.each([
    [1, wrong, JSON.stringify(wrong)],
    [2, wrong, JSON.stringify(wrong)],
    [1, {}, "{}"],
    [2, undefined, "nothing"],
  ] as const)(
    "is no doubt of the signature, and in version %i others may refuse it: %o",
    async (x402Version, extra, got) => {
      const body = await changed(
        ({ paymentRequirements }) => Object.assign(paymentRequirements, { extra }),
        {},
        { x402Version },
      );
      const found = explained(body);
      const expected = '{"name":"USD Coin","version":"2"}';
      expect(found).toMatchObject([{ mistake: elsewhere, at: "paymentRequirements.extra", got, expected }]);
      const said = formatExplanation(explain(JSON.stringify(body), { contracts, now }));
      expect(said).toContain("This facilitator knows its tokens and does not look at `extra`. Another one");
      expect(said).toContain("invalid_exact_evm_missing_eip712_domain");
    },
  );

  test("is named of a payment header, which has what its payer accepted", async () => {
    const { paymentPayload } = await payment({}, { x402Version: 2 });
    Object.assign(paymentPayload.accepted as object, { extra: wrong });
    expect(explained(paymentPayload)).toMatchObject([
      { mistake: elsewhere, at: "paymentPayload.accepted.extra" },
    ]);
    expect(explained((await payment()).paymentPayload)).toEqual([]);
  });

  test("comes after what refuses the payment here, and not where the payer has signed for it", async () => {
    const late = await payment({ validBefore: now - 1n });
    const other = await payment({ asset: { ...networks.base.usdc, version: "1" } });
    for (const body of [late, other]) body.paymentRequirements.extra = wrong;
    expect(explained(late).map(({ mistake }) => mistake)).toEqual(["expired", elsewhere]);
    expect(explained(other).map(({ mistake }) => mistake)).not.toContain(elsewhere);
  });

  test("is looked for neither by Permit2 nor in the short form, and is compared with the token that is known", async () => {
    expect(explained(await permitted({}, { extra: { assetTransferMethod: "permit2" } }))).toEqual([]);
    const body = await payment({ asset: { ...networks.base.usdc, name: "Own" } });
    const tokens = { base: [{ ...networks.base.usdc, name: "Own", methods: ["exact-eip3009"] as const }] };
    const extra = { name: "Own", version: "2" };
    for (const named of [extra, wrong]) {
      const sent = JSON.stringify({
        ...body,
        paymentRequirements: { ...body.paymentRequirements, extra: named },
      });
      const { findings } = explain(sent, { contracts, now, tokens });
      expect(findings.map(({ mistake }) => mistake)).toEqual(named === extra ? [] : [elsewhere]);
    }
    const { network, asset } = (await payment()).paymentRequirements;
    const short = { network, asset, amount: "10000" };
    expect(explained({ ...(await payment()), paymentRequirements: short })).toEqual([]);
  });
});

test("a good offer has nothing wrong", async () => {
  for (const x402Version of [1, 2] as const) {
    const { paymentRequirements: offer } = await payment({}, { x402Version });
    expect(explained({ x402Version, error: "", accepts: [offer] })).toEqual([]);
  }
});

test("everything that is wrong is listed at once, worst first", async () => {
  const body = await changed(
    (wrong) => {
      wrong.paymentRequirements.payTo = merchant;
      wrong.paymentPayload.network = "eip155:8453";
    },
    { value: 1_000_000n, validBefore: now - 1n },
  );
  expect(explained(body).map(({ mistake }) => mistake)).toEqual([
    "wrong-version",
    "pay-to-not-accepted",
    "amount-off-by-decimals",
    "expired",
  ]);
});

test.each([
  [1, 99, "99"],
  [1, "1", '"1"'],
  [1, null, "null"],
  [1, 2, "2"],
  [2, 1, "1"],
] as const)(
  "a request of a payment of version %i that says %o beside it is told that others may refuse it",
  async (x402Version, beside, got) => {
    const body = { ...(await payment({}, { x402Version })), x402Version: beside };
    expect(explained(body)).toMatchObject([
      {
        mistake: "outer-version-differs",
        at: "x402Version",
        got,
        expected: `${x402Version}, as in the payment`,
      },
    ]);
    const { x402Version: _, ...without } = body;
    expect(explained(without)).toEqual([]);
  },
);

test("the version beside a payment is not held to be why the payment was refused", async () => {
  const body = await changed((wrong) => {
    wrong.paymentPayload.payload.signature = "0x1";
  });
  expect(explained({ ...body, x402Version: 99 }).map(({ mistake }) => mistake)).not.toContain(
    "outer-version-differs",
  );
  const late = { ...(await payment({ validBefore: now - 1n })), x402Version: 99 };
  expect(explained(late).map(({ mistake }) => mistake)).toEqual(["expired", "outer-version-differs"]);
});

test("in JSON that is broken, the place is named", () => {
  expect(explained('{\n  "paymentPayload": {},\n}')).toMatchObject([
    { mistake: "not-json", at: "line 3, column 1", got: '"}" where a key in double quotes is expected' },
  ]);
});

test("the facts of the payment are named", async () => {
  const [found] = explained(await payment({ asset: { ...networks.base.usdc, name: "USDC" } }));
  expect(found).toMatchInlineSnapshot(`
    {
      "at": "paymentPayload.payload.signature",
      "expected": "name "USD Coin", version "2", chainId 8453, verifyingContract 0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
      "fix": "Sign for the token's own name and version, which clients take from \`extra\` of the requirements, its address and the network's chain id.",
      "got": "signed with name "USDC" instead of "USD Coin"",
      "mistake": "signed-with-another-domain",
    }
  `);
  const [late] = explained(await payment({ validBefore: now - 12n }));
  expect(late?.got).toContain("12 s ago");
});

test("a header with its name, and a challenge, are read too", async () => {
  const { paymentPayload } = await payment({}, { x402Version: 2 });
  const header = Buffer.from(JSON.stringify(paymentPayload)).toString("base64");
  expect(explain(`PAYMENT-SIGNATURE: ${header}`, { contracts, now })).toEqual({
    kind: "payment",
    findings: [],
  });
  const { paymentRequirements } = await payment();
  const challenge = { x402Version: 1, accepts: [{ ...paymentRequirements, payTo: merchant }] };
  expect(explained(challenge).map(({ at }) => at)).toEqual(["accepts[0].payTo"]);
});

test.each(["to", "validBefore", "nonce"] as const)(
  "a signature whose %s was edited afterwards is not only put down to the key",
  async (member) => {
    const body = await changed(({ paymentPayload: { payload } }) => {
      const edited = { to: merchant, validBefore: `${now + 61n}`, nonce: `0x${"12".repeat(32)}` };
      payload.authorization[member] = edited[member];
    });
    const found = explained(body).find(({ mistake }) => mistake === "signed-by-another-key");
    // A recipient that was edited is found out, since the seller's terms have the one that was signed.
    if (member === "to")
      expect(explained(body).map(({ mistake }) => mistake)).toContain("signed-other-values");
    else expect(found?.fix).toContain("every member as it was signed");
    expect(mistakes["signed-by-another-key"].why).toContain("changed after signing");
  },
);

describe("an answer", () => {
  const hash = `0x${"ab".repeat(32)}`;
  const of = (answer: object) => {
    const explanation = explain(JSON.stringify(answer), { contracts, now });
    return { found: explanation.findings, text: formatExplanation(explanation) };
  };

  test("of success has nothing wrong with it, and names the transaction", () => {
    const { found, text } = of({ success: true, transaction: hash, network: "base", payer: merchant });
    expect(found).toEqual([]);
    expect(text).toContain(`settled in ${hash} on base`);
  });

  test("of a valid payment has nothing wrong with it, and does not say that it was settled", () => {
    const { found, text } = of({ isValid: true, payer: merchant });
    expect(found).toEqual([]);
    expect(text).toContain("the payment is valid. It is not settled by that.");
  });

  test("of refusal is explained by its reason, though it says nothing else", () => {
    const answer = { success: false, errorReason: "insufficient_funds", transaction: "", network: "base" };
    const { found, text } = of(answer);
    const { meaning, fix, locally } = reasonTexts.insufficient_funds;
    expect(found).toEqual([
      {
        ...{ mistake: "refused", at: "errorReason", got: '"insufficient_funds"' },
        ...{ why: meaning, fix: withLocal(fix, locally), reason: "insufficient_funds" },
      },
    ]);
    expect(text).toContain(meaning);
    expect(text).toContain("more:     docs/errors.md#insufficient_funds");
  });

  test("of refusal is explained by its situation, where it says one, and else by its reason alone", () => {
    const { situation, message: errorMessage } = refusals.payerBlacklisted();
    const answer = { success: false, errorReason: "invalid_transaction_state", errorMessage };
    expect(of({ ...answer, situation }).text).toContain("Have another account pay");
    const { meaning } = reasonTexts.invalid_transaction_state;
    for (const unknown of [{}, { situation: "of_another_facilitator" }, { situation: 7 }]) {
      expect(of({ ...answer, ...unknown }).text).toContain(meaning);
    }
  });

  test("of refusal with a name of the public reference facilitator is explained as with that of the specification", () => {
    const [said] = of({ isValid: false, invalidReason: "invalid_exact_evm_payload_signature" }).found;
    expect(of({ isValid: false, invalidReason: "invalid_exact_evm_signature" }).found).toEqual([
      { ...said, got: '"invalid_exact_evm_signature"' },
    ]);
  });

  test("of refusal for what the request holds says how to look into that", () => {
    const { text } = of({ isValid: false, invalidReason: "invalid_exact_evm_payload_signature" });
    expect(text).toContain("Pass the request itself to `x402-kit explain`");
  });

  test.each(["toString", "not_ours", ""])("of refusal for the unknown reason %j says that", (errorReason) => {
    const { found, text } = of({ success: false, errorReason });
    expect(found).toMatchObject([{ mistake: "refused", got: JSON.stringify(errorReason) }]);
    expect(text).toContain("The reason is none of this facilitator's");
    expect(text).toContain("docs/errors.md#refused");
  });

  test("of refusal without a reason says that", () => {
    expect(of({ success: false }).text).toContain("The answer names no reason.");
  });

  test("without a verdict is explained by the problem that it names", () => {
    const type = "urn:x402-facilitator-kit:problem:unauthorized";
    const { text } = of({ type, status: 401, success: false, errorReason: "unexpected_settle_error" });
    expect(text).toContain("Send the API key in the header Authorization");
    expect(text).toContain("docs/errors.md#unauthorized");
    expect(text).not.toContain("503");
  });

  test.each([{ success: true, transaction: "" }, { success: true }, { success: "true", transaction: hash }])(
    "of success that names no transaction, or is not true, is not believed: %o",
    (answer) => {
      expect(of(answer).found).toHaveLength(1);
    },
  );

  test.each([
    [{ success: false, errorReason: "insufficient_funds" }, "errorReason"],
    [{ success: false }, "errorReason"],
    [{ isValid: false, invalidReason: "insufficient_funds" }, "invalidReason"],
  ])("of refusal is shown where it says so: %o", (answer, at) => {
    expect(of(answer).found).toMatchObject([{ mistake: "refused", at }]);
  });
});

test("control characters of what is explained do not reach the terminal", () => {
  const evil = "\u001b[2J\u009b31m\u007f\u202e\r\nNothing is wrong";
  const texts = [evil, JSON.stringify({ success: false, errorReason: evil, errorMessage: evil })];
  for (const text of texts) {
    const shown = formatExplanation(explain(text, { contracts, now }));
    expect(shown.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\u202e]/u);
    expect(shown).not.toMatch(/^Nothing is wrong/m);
    expect(shown).toContain("\\u001b[2J\\u009b31m\\u007f");
  }
});

test("whatever it is given, it gives findings and never throws", () => {
  const values = [null, true, 7, "", "x", [], {}, { accepts: {} }, { accepts: [null, 1] }, { payload: 1 }];
  const bodies = values.flatMap((value) => [
    value,
    { paymentPayload: value, paymentRequirements: value },
    {
      paymentPayload: { x402Version: value, payload: value, accepted: value },
      paymentRequirements: { asset: value },
    },
    {
      paymentPayload: {
        x402Version: 1,
        network: "base",
        payload: { signature: value, authorization: value },
      },
    },
    { success: value, errorReason: value },
  ]);
  for (const body of bodies) expect(explained(JSON.stringify(body) ?? "")).toBeInstanceOf(Array);
});

describe("where payments may go straight to a wallet", () => {
  const findings = (body: Body, payTo: PayToPolicy) =>
    explain(JSON.stringify(body), { contracts, now, payTo }).findings;
  const straight = async (to: Address, payTo: Address = to) => {
    const body = await payment({ to });
    body.paymentRequirements.payTo = payTo;
    return body;
  };

  test.each(["recipients", "any"] as const)("with %s, one that is signed to payTo is good", async (payTo) => {
    expect(findings(await straight(merchant), payTo)).toEqual([]);
    expect(findings(await payment(), payTo)).toEqual([]);
    expect(findings(await straight(merchant), "contract").map(({ mistake }) => mistake)).toEqual([
      "pay-to-not-accepted",
      "signed-for-another-recipient",
    ]);
  });

  test("one that is signed to another address is told of payTo", async () => {
    expect(findings(await straight(contracts.mainnet, merchant), "any")).toEqual([
      {
        mistake: "signed-for-another-recipient",
        at: "authorization.to",
        got: contracts.mainnet,
        situation: "recipient_differs",
        expected: `the payTo of the requirements, ${merchant}`,
        fix: "Sign again, for the payTo that the challenge names.",
      },
    ]);
  });

  test("the contract of the other tier is a mistake all the same", async () => {
    const found = findings(await straight(contracts.testnet), "any");
    expect(found.map(({ mistake, at }) => [mistake, at])).toEqual([
      ["other-tier", "paymentRequirements.payTo"],
    ]);
  });

  test("of a payment header alone it is not known where it is to go", async () => {
    const { paymentPayload } = await straight(merchant);
    expect(findings(paymentPayload as never, "any")).toEqual([]);
  });

  test("the short form without payTo asks for the contract", async () => {
    const body = await straight(merchant);
    Object.assign(body.paymentRequirements, { amount: "10000", payTo: undefined, scheme: undefined });
    expect(findings(body, "any")).toMatchObject([
      { mistake: "signed-for-another-recipient", expected: expect.stringContaining(contracts.mainnet) },
    ]);
  });
});
