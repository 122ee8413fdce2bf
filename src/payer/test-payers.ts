import type { InvalidReason } from "../protocol/catalogue.ts";
import type { Address, Hex } from "../protocol/hex.ts";

/** A payer whose state determines the outcome of an otherwise valid payment. */
export type TestPayer = {
  /** The `authorization.from` of its payments. */
  address: Address;
  /** The key that signs for it: its own, or the wallet owner's. It is public: never send anything of value. */
  privateKey: Hex;
  /** The address of the key, if the payer is a contract wallet. */
  owner?: Address;
  /** The situation that it stands for, in one sentence. */
  standsFor: string;
  /** The result of verify: `invalidReason`, or success. */
  outcome: InvalidReason | "success";
  /** The result of settle, if it differs from verify's; with the reason of x402 version 2. */
  settleOutcome?: InvalidReason | "success";
  /** The result of verify for a Permit2 payment, if it differs. */
  permit2Outcome?: InvalidReason;
  /** Its Permit2 allowance, in the token's smallest unit. Default: unlimited. */
  approved?: "nothing" | "1";
};

/**
 * The test payers. Like test card numbers, each one has a fixed outcome. On local chains, each account really is in the
 * state that it stands for. The fixtures know the same addresses, so a payment gets the same answer with and without a
 * chain.
 *
 * Each key is keccak256 of `x402-facilitator-kit test payer: NAME`. The address of a deployed contract wallet is the last
 * 20 bytes of keccak256 of `x402-facilitator-kit test payer: NAME, wallet`; that of the undeployed wallet is the one that
 * the public CREATE2 deployer would give it.
 *
 * @example
 * import { testPayers } from "x402-facilitator-kit/test-payers";
 * const account = privateKeyToAccount(testPayers.funded.privateKey);
 */
export const testPayers = {
  funded: {
    address: "0x652026B65e32ffC7487F89D68D208977789a04d3",
    privateKey: "0x6d7243b4c7e3ca63266446cc781cab0b1dbe587c38ae51ac9d255c27b46ad225",
    standsFor: "A plain account (EOA) with 1,000,000 USDC.",
    outcome: "success",
  },
  empty: {
    address: "0xF44DC5355909ac8b48873E7995dEfC56D1620a52",
    privateKey: "0x58198feb37543b0b98eeef2a40e427f64966ea09e1915d635fa7506fda76c4eb",
    standsFor: "A plain account that has no USDC.",
    outcome: "insufficient_funds",
    permit2Outcome: "permit2_insufficient_balance",
  },
  unapproved: {
    address: "0x25164E0f1b0f0d7518E0afc0ac8fCBf65247a438",
    privateKey: "0xdef2c64b56cef59d472761fbe19259b4a5d3059676628d3bed64d4aa97634a3c",
    standsFor: "A plain account with 1,000,000 USDC that has not approved Permit2.",
    outcome: "success",
    permit2Outcome: "permit2_allowance_required",
    approved: "nothing",
  },
  approvedShort: {
    address: "0x69bff11Eb528b173aE1583Ed44F9e458B09197c3",
    privateKey: "0xb22efe92178568c39ff196f7c889314531dc8e856cebef61f09a899859ffa89d",
    standsFor: "A plain account with 1,000,000 USDC that lets Permit2 take a millionth of one.",
    outcome: "success",
    permit2Outcome: "permit2_allowance_required",
    approved: "1",
  },
  sponsored: {
    address: "0xD827997ee0802582c6c47DF239fe19f66ebF716B",
    privateKey: "0xa38fb8c0072c72bd0bfef1a0c891b74b834665f051922a70680ca02380e956d8",
    standsFor:
      "A plain account with 1,000,000 USDC and gas money that has not approved Permit2, and sends along a transaction that does.",
    outcome: "success",
    permit2Outcome: "permit2_allowance_required",
    approved: "nothing",
  },
  blacklisted: {
    address: "0x102A69d03357F319ceE56107577DCEDA1FEe298a",
    privateKey: "0xf9afe95cfb299208ea0f5faa9d949df03a27c8701ad7f014e25ba42286da7fd1",
    standsFor: "A plain account with 1,000,000 USDC that the issuer has blacklisted.",
    outcome: "invalid_transaction_state",
  },
  smartWallet: {
    address: "0x82b114C1EE31b6479aE3E3a7775040e412F3971b",
    privateKey: "0x84d7b7425797764db68970bcb06567c7decef662006a143747d9817ff939b253",
    owner: "0x8191933d556Ef839077dD444244ecF591fB019C1",
    standsFor: "A deployed contract wallet (ERC-1271) with 1,000,000 USDC; the key is its owner's.",
    outcome: "success",
  },
  undeployedWallet: {
    address: "0x40faEd53CDF4F63a564C0210864363E45d40f400",
    privateKey: "0x9f87e7ea265944bc441fd41b8e45a497b5b6a8d4dbabe79f977e16fa1591e44b",
    owner: "0x6b2235D50eCaFfa4DC7FC63Ef15b6f0DB925497A",
    standsFor:
      "A contract wallet with 1,000,000 USDC that is deployed with its first payment (ERC-6492), where the facilitator calls its factory.",
    outcome: "success",
    permit2Outcome: "invalid_permit2_signature",
  },
  delegated: {
    address: "0x26E646476B38b64Ea009FC84269deF3bcBF21bD0",
    privateKey: "0xcb12a91fcf227621886b0ce0abddebb9916a918fd67f52ab82ad0fd400d6571c",
    standsFor:
      "A plain account with 1,000,000 USDC, delegated (EIP-7702) to code that accepts its signatures.",
    outcome: "success",
  },
  hijacked: {
    address: "0x2A66C81BA33ceA99E561662E7FD11Df4BD5fD1d1",
    privateKey: "0xf16df913e062bf0b6d8b641e234ec6703c343f996508929f327766e8504c7050",
    standsFor:
      "A plain account with 1,000,000 USDC, delegated (EIP-7702) to code that accepts no signature, as leaked keys are on live chains.",
    outcome: "invalid_exact_evm_payload_signature",
    permit2Outcome: "invalid_permit2_signature",
  },
  gasBurner: {
    address: "0xA90840213eFA86cd3c7b44cA275480395e63F3bF",
    privateKey: "0x421581474c96075e09f0acf1c6ed4dd7279e62060cb0a47d84e0667704a6c201",
    owner: "0xe608f7730b88f0E5EAE21002a4c1DE1604b4657C",
    standsFor:
      "A contract wallet with 1,000,000 USDC that burns all gas it is given when asked about a signature.",
    outcome: "invalid_exact_evm_payload_signature",
    permit2Outcome: "invalid_permit2_signature",
  },
  fickle: {
    address: "0x5f944Ac6BDaFC06ac301A5d2a1F1139F6A73AbEF",
    privateKey: "0xa3a03e817571379da3749a63ce61b1c0888b029fac814b4a7ae19b3794991d01",
    owner: "0x898B5A0508C3Ef3bebc8E7087CBA1B236beb0F5b",
    standsFor:
      "A contract wallet with 1,000,000 USDC that accepts its signature in every simulation and refuses it once mined: the transaction reverts.",
    outcome: "success",
    settleOutcome: "invalid_transaction_state",
  },
} as const satisfies Record<string, TestPayer>;

export type TestPayerName = keyof typeof testPayers;

/** The test payer at an address; undefined for any other account. */
export function testPayerAt(address: string): { name: string; payer: TestPayer } | undefined {
  const wanted = address.toLowerCase();
  for (const [name, payer] of Object.entries(testPayers)) {
    if (payer.address.toLowerCase() === wanted) return { name, payer };
  }
  return undefined;
}

/** The name of the test payer at an address; undefined for any other account. */
export function nameOfTestPayer(address: string): string | undefined {
  return testPayerAt(address)?.name;
}
