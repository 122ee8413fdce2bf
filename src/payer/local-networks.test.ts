import { expect, test } from "vitest";
import { explain } from "../observe/explain/explain-input.ts";
import { localContracts } from "./local-chains.ts";
import { networks } from "./local-networks.ts";

test.each(Object.values(networks))(
  "what is said of $name makes an offer in which nothing is wrong",
  (network) => {
    const { caip2, payTo, asset, extra } = network;
    const offer = {
      scheme: "exact",
      network: caip2,
      amount: "10000",
      asset,
      payTo,
      maxTimeoutSeconds: 60,
      extra,
    };
    const challenge = JSON.stringify({ x402Version: 2, accepts: [offer] });
    expect(explain(challenge, { contracts: localContracts, now: undefined }).findings).toEqual([]);
  },
);
