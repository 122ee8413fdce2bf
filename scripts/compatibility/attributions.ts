/** Who is responsible for a bad verdict, and why. */
export type Attribution = { whose: "ours" | "the protocol's" | "the package's"; why: string };

const sentOnce = ofProtocol(
  "The package sends a payment once, and hands the error or the answer to its caller. The protocol does not say that a payment may be sent again.",
);
const saysNothingYet = ofProtocol(
  "The answer to an undecided settlement is a 402 like any other, and the package sends a payment once.",
);

/** Verdicts on any package, by kind and case. */
const attributions: Readonly<Record<string, Attribution>> = {
  "client shop-answer-lost": sentOnce,
  "client reset-before-body": sentOnce,
  "client reset-in-body": sentOnce,
  "client unavailable-after-settle": sentOnce,
  "client facilitator-answer-lost": saysNothingYet,
  "client pending": saysNothingYet,
  "client receipt-denies": saysNothingYet,
  "client redirect-elsewhere": {
    whose: "the package's",
    why: "Redirects are followed with all headers but those of logins, and the payment's is none of them for `fetch` and axios. Who gets it can have the goods.",
  },
  "shop free-with-head": {
    whose: "the package's",
    why: "A price for `GET /report` is none for HEAD, which the framework answers with the handler of GET: it runs unpaid, and its headers are sent.",
  },
  "shop buyer-gone": ofProtocol(
    "The package settles, then answers, and keeps no answer. A payment that comes again is a used one; the protocol has an extension for that (payment-identifier), which is not on by default.",
  ),
};

/** Verdicts on one package, by its name and the case. */
const ofPackages: Readonly<Record<string, Attribution>> = {
  "x402-axios thousandfold": {
    whose: "the package's",
    why: "`withPaymentInterceptor` has no maximum, neither as a parameter nor by default; a caller can refuse in a selector of their own.",
  },
  "@x402/evm total-too-high": {
    whose: "the package's",
    why: "It takes nothing from a receipt that names a wrong total, not even what was charged, and deposits again for the next purchase.",
  },
  "@x402/evm restart": {
    whose: "the package's",
    why: "Its default keeps vouchers in memory. With `FileChannelStorage` it passes every case.",
  },
};

/** Who is responsible for a bad verdict; undefined if it was not examined. */
export function attributionOf(
  kind: "client" | "shop",
  name: string,
  testCase: string,
): Attribution | undefined {
  return ofPackages[`${name} ${testCase}`] ?? attributions[`${kind} ${testCase}`];
}

function ofProtocol(why: string): Attribution {
  return { whose: "the protocol's", why };
}
