import type { Mistake } from "./mistake.ts";

/* Mistakes in the setup, which show in a command's output, or in a client's error that `explain` is given. */

export type SetupRow = Mistake & {
  /** The commands that meet the mistake. `at`: the facilitator's origin; `shop`: the URL of a shop's resource. */
  commands: (at: string, shop: string) => readonly (readonly string[])[];
  variables?: Readonly<Record<string, string>>;
};

const error =
  (text: string): SetupRow["commands"] =>
  () => [["explain", text]];
const https = (url: string) => url.replace("http:", "https:");
const loopback6 = (url: string) => url.replace("127.0.0.1", "[::1]");

export const setups: Readonly<Record<string, SetupRow>> = {
  "https is asked of an http port": {
    commands: (at, shop) => [
      ["buy", https(shop), "--url", at],
      ["explain", https(shop)],
      ["why", "--url", https(at)],
    ],
    cause: [/https was asked of an http port/],
    change: [/http:\/\//],
  },
  "a client is given https for an http port": {
    commands: error(
      "TypeError: fetch failed\n [cause]: Error: write EPROTO 80A:error:0A00010B:SSL routines:ssl3_get_record:wrong version number",
    ),
    cause: [/https?\b/, /TLS/],
    change: [/http:\/\//],
  },
  "[::1] is asked where 127.0.0.1 listens": {
    commands: (at, shop) => [
      ["buy", loopback6(shop), "--url", at],
      ["explain", loopback6(shop)],
      ["why", "--url", loopback6(at)],
    ],
    cause: [/IPv6|::1/],
    change: [/127\.0\.0\.1/],
  },
  "a client gets localhost as [::1]": {
    commands: error("Error: connect ECONNREFUSED ::1:4402"),
    cause: [/::1/, /IPv6/],
    change: [/127\.0\.0\.1:4402/],
  },
  "a client stops at its spend limit": {
    commands: error("Error: Payment amount exceeds maximum allowed"),
    cause: [/limit/],
    change: [/maxValue/],
  },
  "a page is not let in by the shop": {
    commands: error(
      "Access to fetch at 'http://localhost:3000/report' from origin 'http://localhost:5173' has been blocked by CORS policy: No 'Access-Control-Allow-Origin' header is present on the requested resource.",
    ),
    cause: [/CORS/, /http:\/\/localhost:5173/],
    change: [/Access-Control-Allow-Origin/, /--cors-origins/],
  },
  "a page may not send the payment header": {
    commands: error(
      "Access to fetch at 'http://localhost:3000/report' from origin 'http://localhost:5173' has been blocked by CORS policy: Request header field payment-signature is not allowed by Access-Control-Allow-Headers in preflight response.",
    ),
    cause: [/payment-signature/i],
    change: [/Access-Control-Allow-Headers/],
  },
  "a payer's key has quotes around it": {
    commands: (_, shop) => [["buy", shop, "--live"]],
    variables: { PAYER_PRIVATE_KEY: `"0x${"12".repeat(32)}"` },
    cause: [/PAYER_PRIVATE_KEY/, /quot/],
    change: [/leave|without/i],
    never: /1212/,
  },
  "an address is given for a payer's key": {
    commands: (_, shop) => [["buy", shop, "--live"]],
    variables: { PAYER_PRIVATE_KEY: "0x857b06519E91e3A54538791bDbb0E22373e36b66" },
    cause: [/PAYER_PRIVATE_KEY/, /40 hexadecimal digits, as an address has/],
    change: [/key has 64/],
  },
};
