import { expect, test } from "vitest";
import {
  channelId,
  channelSeparator,
  channelTypehashes,
  claimBatchDigest,
  depositNonce,
  refundDigest,
  voucherDigest,
} from "./channel.ts";

/** Computed with viem, and equal to what the original contracts answer. */
const chainId = 84_532;
const channel = {
  payer: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
  payerAuthorizer: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
  receiver: "0x209693Bc6afc0C5328bA36FaF03C514EF312287C",
  receiverAuthorizer: "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC",
  token: "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
  withdrawDelay: 900,
  salt: `0x${"00".repeat(32)}`,
} as const;
const id = "0x0407840585f69f8b271882e58918a16a51f5ff430ead65a9adc4a156979c22c4";

test("the typed data is that of the contract", () => {
  expect(channelTypehashes).toEqual({
    channel: "0x1c9a06ceab9b0ebbd3301dc56c9111bb6d9af421356dc9ccb3b7084c755db308",
    voucher: "0x1e1bd6ff84c3e0d9029a292b212e039c0ca97ec497c55191a4a5874294609a69",
    refund: "0xbe23ad087435072cd69b49cc5b92de10ee610fce7ae0ab428307972d764bb216",
    claimEntry: "0x30b9a0367528fca13c3e8ec6134c3113f1887ebe7a1ad61de0955aac288b0cf5",
    claimBatch: "0x42bd57c010b870c2e96203c66341f28a6a19b4d56a74533a8eb5f706b9fd6d57",
    receive: "0xd099cc98ef71107a616c4f0f941f04c322d8e254fe26b3c6668db87aae413de8",
    witness: "0xba0000097e86dabe64178afe31109221193339a6861598f2133fcbdc92c84479",
    permitted: "0x618358ac3db8dc274f0cd8829da7e234bd48cd73c4a740aede1adec9846d06a1",
    permit: "0x436a25c01a21a6ed025816c4c9ea3d6132aa879dd7ef16f6188dd3b0aebccc52",
  });
  expect(channelSeparator(chainId)).toBe(
    "0xfdef80764086b1e0fc6ba99f0cb9aa1d59109fda7c23d60334c89d2de44dffce",
  );
});

test("the digests are those of the contract", () => {
  expect(channelId(channel, chainId)).toBe(id);
  expect(voucherDigest(id, 1_000n, chainId)).toBe(
    "0x5efc6c982187b381dd5a0dfb0fa807c27c2943e47f74147d666511b77859b9ab",
  );
  expect(refundDigest(id, 0n, 99_300n, chainId)).toBe(
    "0xf8d1979cc95abab8b7056d03eec89ccc1a4e8aa580327bc10785ceb0924ff098",
  );
  const claim = { channel, maxClaimableAmount: 1_000n, totalClaimed: 700n, signature: "0x" } as const;
  expect(claimBatchDigest([claim], chainId)).toBe(
    "0xf57ec693156f8b40afe84d4b244eb0f85d8d37ca692a6a10b827d1a3fd146fd9",
  );
  expect(depositNonce(id, `0x${"11".repeat(32)}`)).toBe(
    "0xc696acdb6561b5aad73108f3d50aa3ecd437d55401f0e69b72992b9b50ac38d2",
  );
});
