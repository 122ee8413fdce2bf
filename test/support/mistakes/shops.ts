import { networks } from "../../../src/protocol/networks.ts";
import { encodeHeader } from "../../../src/protocol/payment-headers.ts";
import type { StubShop } from "../stub-shop.ts";
import type { Door, Mistake } from "./mistake.ts";

/* Mistakes between a client and a shop, which the facilitator never sees. */

/** A payment header as it is sent. */
type Header = { name: string; value: string };

export type ShopRow = Mistake & {
  /** How the shop differs from a good one. */
  shop?: StubShop;
  /** Turns a good payment header into the one that is sent; without it, the shop is requested but not paid. */
  pays?: (good: Header) => Header;
  /** The commands that report it besides `why`; `explain` by default. */
  doors?: readonly Extract<Door, "explain" | "check" | "buy">[];
};

const same = (header: Header) => header;
const asJson = ({ value }: Header) => Buffer.from(value, "base64").toString();
const pages = { "Access-Control-Allow-Origin": "*", "Access-Control-Allow-Headers": "*" };
const { usdc } = networks.base;
const isPaid = ({ headers }: Parameters<NonNullable<StubShop["instead"]>>[0]) =>
  headers["payment-signature"] !== undefined;
/** Offers a minute to unpaid requests, and five minutes to paid ones. */
let timeout = 60;

export const shops: Readonly<Record<string, ShopRow>> = {
  "a shop puts the challenge of version 2 into the body": {
    shop: { isInBody: true },
    cause: [/where buyers of its version do\s+not\s+look/],
    change: [/PAYMENT-REQUIRED/],
    doors: ["explain", "check", "buy"],
  },
  "a shop sends PAYMENT-REQUIRED as plain JSON": {
    shop: { encode: JSON.stringify },
    cause: [/not\s+encoded|JSON/],
    change: [/base64/],
    doors: ["explain", "check", "buy"],
  },
  "a shop encodes PAYMENT-REQUIRED twice": {
    shop: { encode: (value) => Buffer.from(encodeHeader(value)).toString("base64") },
    cause: [/twice|two layers/i],
    change: [/once/],
    doors: ["explain", "check", "buy"],
  },
  "a shop answers 402 and says nothing": {
    shop: { encode: () => undefined },
    cause: [/no challenge/],
    change: [/accepts/],
    doors: ["explain", "buy"],
  },
  "a shop asks for bridged USDC": {
    silent: ["up"],
    shop: { offer: { asset: "0xd9aAEc86B65D86f6A7B5B1b0c42FFA531710b6CA" } },
    cause: [/address of\s+USDbC/],
    change: [new RegExp(usdc.address)],
    doors: ["explain", "check"],
  },
  "a shop names maxAmountRequired in version 2": {
    shop: { offer: { amount: undefined, maxAmountRequired: "10000" } },
    cause: [/amount/, /maxAmountRequired/],
    change: [/version 2/],
    doors: ["explain", "check"],
  },
  "a shop names its wallet by ENS": {
    shop: { offer: { payTo: "shop.eth" } },
    cause: [/payTo/, /shop\.eth/],
    change: [/[Rr]esolve/],
    doors: ["explain", "check"],
  },
  "a shop writes its price as a number": {
    shop: { offer: { amount: 10_000 } },
    cause: [/amount/, /10000/],
    change: [/"10000"/],
    doors: ["explain", "check"],
  },
  "a shop hides its headers from pages": {
    silent: ["up"],
    shop: { cors: pages },
    cause: [/PAYMENT-REQUIRED/, /pages?\b/],
    change: [/Access-Control-Expose-Headers/],
    doors: ["explain", "check"],
  },
  "a shop is dearer than public clients pay without being told": {
    silent: ["up"],
    shop: { x402Version: 1, offer: { maxAmountRequired: "250000" } },
    cause: [/0\.25 USDC/, /0\.1 USDC/],
    change: [/maxValue/],
  },
  "a payment of version 2 is in the header of version 1": {
    pays: ({ value }) => ({ name: "X-PAYMENT", value }),
    cause: [/X-PAYMENT/],
    change: [/PAYMENT-SIGNATURE/],
  },
  "a payment header is plain JSON": {
    pays: (header) => ({ ...header, value: asJson(header) }),
    cause: [/not encoded|plain JSON/],
    change: [/base64/],
  },
  "a payment header is encoded twice": {
    pays: ({ name, value }) => ({ name, value: Buffer.from(value).toString("base64") }),
    cause: [/twice/],
    change: [/once/],
  },
  "a shop offers something else to those who pay": {
    shop: {
      offer: {
        get maxTimeoutSeconds() {
          return timeout;
        },
      },
      instead(request) {
        timeout = isPaid(request) ? 300 : 60;
      },
    },
    pays: same,
    cause: [/maxTimeoutSeconds/, /\b60\b/, /\b300\b/],
    change: [/exactly as the shop wrote it/],
    doors: ["buy"],
  },
  "a payment header is stripped on the way": {
    pays: same,
    cause: [/as (if|though) (no payment|none) had come/],
    change: [/proxy/, /PAYMENT-SIGNATURE/],
    doors: ["buy"],
  },
  "a shop serves without asking the facilitator": {
    shop: { instead: (request, response) => isPaid(request) && response.end("the goods") },
    pays: same,
    cause: [/without asking the facilitator/],
    change: [/verify and settle/],
    doors: [],
  },
  "a shop fails when it is paid": {
    shop: { instead: (request, response) => isPaid(request) && response.writeHead(500).end("TypeError: x") },
    pays: same,
    cause: [/without asking the facilitator/, /500/],
    change: [/shop's own log/],
    doors: [],
  },
  "a shop does not run": {
    shop: { instead: (request) => request.socket.destroy() },
    cause: [/does not answer/],
    change: [/[Ss]tart the shop/],
    doors: [],
  },
};
