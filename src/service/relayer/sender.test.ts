import { expect, test } from "vitest";
import { localNetwork } from "../../../test/support/local-network.ts";
import type { Chain } from "../../chain/chain.ts";
import { createLocalSigner } from "../../chain/signing/local-signer.ts";
import type { Attempt } from "../../ledger/settlement.ts";
import { waysToPay } from "../../methods/on-chain/ways-to-pay.ts";
import { createLogger } from "../../observe/log/logger.ts";
import { harnessAccounts } from "../../payer/accounts.ts";
import type { Hex } from "../../protocol/hex.ts";
import { createFlight, createSender } from "./sender.ts";

const signer = createLocalSigner(harnessAccounts.operator.privateKey);

/** A stored attempt of txNonce 0 that offers so much. */
async function attemptOf(maxFeePerGas: bigint): Promise<Attempt> {
  const { address } = signer;
  const transaction = {
    to: address,
    data: "0x" as Hex,
    gas: 21_000n,
    maxFeePerGas,
    maxPriorityFeePerGas: 1n,
  };
  const signed = await signer.signTransaction({ ...transaction, chainId: 8453, nonce: 0 });
  return { ...signed, chainId: 8453, operator: address, txNonce: 0, kind: "settle", createdAt: 0 };
}

test("after its block has vanished, the attempt that callers were answered with is sent alone, until more is to be offered", async () => {
  let time = 0;
  const sent: Hex[][] = [];
  const network = localNetwork({
    rpcUrl: "http://127.0.0.1:1",
    facilitatorContract: signer.address,
    blockTimeMs: 2_000,
  });
  const chain = {
    network,
    async broadcast(raws: readonly Hex[]) {
      sent.push([...raws]);
    },
  } as unknown as Chain;
  const flight = createFlight(() => time);
  const { broadcast } = createSender({
    ...{ chain, flight, account: signer.address, now: () => time, log: createLogger("silent") },
    ways: { ...waysToPay, knows: () => true, settlingOf: () => expect.unreachable() },
    store: { sendAgain: () => expect.unreachable() },
    replace: () => expect.unreachable(),
  });
  const [mined, newest] = [await attemptOf(10n), await attemptOf(20n)];
  const about = { settlements: [], hasVanished: true, answered: mined.hash };
  const slot = flight.track({ attempt: mined, ...about });
  flight.track({ attempt: newest, ...about });

  await broadcast([slot]);
  time += 10 * network.blockTimeMs;
  await broadcast([slot]);
  expect(sent).toEqual([[mined.raw], [newest.raw, mined.raw]]);
});
