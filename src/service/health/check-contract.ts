import {
  type ContractState,
  contractCalls,
  membershipsOf,
  readContractState,
} from "../../chain/deploy/contract-state.ts";
import { expectAnswer } from "../../chain/deploy/endpoints.ts";
import type { RpcAnswer } from "../../chain/rpc/rpc.ts";
import { callViews, codeOf, decimalsOf, domainSeparatorOf, readViews, viewGas } from "../../chain/views.ts";
import type { NetworkConfig } from "../../config/serve-config.ts";
import { contractVariables } from "../../config/variables.ts";
import { domainSeparator } from "../../methods/eip712.ts";
import { forwardLimitOf } from "../../methods/on-chain/payouts.ts";
import { permit2Of } from "../../methods/permit2/on-chain/permit2-state.ts";
import { exactProxyAddress, permit2Address, uptoProxyAddress } from "../../methods/permit2/permit.ts";
import { type Address, addressWord, type Hex, sameAddress } from "../../protocol/hex.ts";
import { type Asset, isPaidBy } from "../../protocol/networks.ts";
import { formatAmount, unitsOf } from "../../protocol/token-units.ts";
import { self } from "../../util/self-command.ts";
import { type Check, type CheckContext, failed, type NetworkCheck, ok, warning } from "./check.ts";

/** The forward limit of an asset, and the part of it available now; undefined if the contract has none. */
type AssetLimit = { asset: Asset; limit: bigint | undefined; available: bigint | undefined };

/** Checks the facilitator contract, its roles, and its forward limits if there is a recoverer. */
export const contractCheck: NetworkCheck = {
  name: "contract",
  required: true,
  calls(context) {
    const { facilitatorContract, assets } = context.network;
    const limits = assets.flatMap(({ address }) => forwardLimitOf(facilitatorContract, address));
    return [
      callViews(limits, viewGas),
      ...contractCalls(facilitatorContract, membershipsOf(context)),
      ...formerOf(context).flatMap((former) => contractCalls(former, formerMemberships(context))),
    ];
  },
  read([limitsAnswer, codeAnswer, stateAnswer, ...formerAnswers], context) {
    const { network, operators, recoverer } = context;
    const state = readContractState(
      [codeAnswer, stateAnswer].filter((answer) => answer !== undefined),
      membershipsOf(context),
    );
    const former = formerOf(context).flatMap((contract, index) =>
      checkFormer(
        network,
        contract,
        readContractState(formerAnswers.slice(2 * index, 2 * index + 2), formerMemberships(context)),
      ),
    );
    const limits = readLimits(limitsAnswer, network);
    const code = checkCode(network, state, limits);
    if (state.code === "none") return [code, ...former];
    return [
      code,
      ...former,
      ...checkPaused(state),
      ...state.memberships.map((membership) => checkMembership(network, membership)),
      ...(recoverer === undefined ? [] : limits.flatMap(checkLimit)),
      ...checkAdmin(state, [...operators, ...(recoverer === undefined ? [] : [recoverer])]),
    ];
  },
};

const formerOf = ({ network }: { network: NetworkConfig }) => network.formerContracts ?? [];

const formerMemberships = ({ operators }: Pick<CheckContext, "operators">) =>
  membershipsOf({ operators, recoverer: undefined });

/** A former contract never keeps the service from starting: it only settles what payers signed for it. */
function checkFormer(
  { tier, name }: NetworkConfig,
  contract: Address,
  { code, memberships }: ContractState,
): readonly Check[] {
  const without = `Correct ${contractVariables[tier]}, or take the address out of it once no payment is signed for it.`;
  if (code === "none") {
    return [
      warning(
        "contract",
        `there is no contract at ${contract}, which is configured as a former one`,
        without,
      ),
    ];
  }
  if (code === "other") {
    const detail = `${contract}, which is configured as a former contract, has the code of no published version`;
    return [warning("contract", detail, without)];
  }
  const lacking = memberships.filter(({ holds }) => holds !== true);
  if (lacking.length === 0) return [ok("contract", `${contract} is a former contract, and still settles`)];
  return lacking.map(({ account }) =>
    warning(
      "contract",
      `${account} does not hold OPERATOR_ROLE on the former contract ${contract}: what was signed for it does not settle`,
      `The admin grants it: ${self} deploy --network ${name} --contract ${contract} --grant-operator ${account}`,
    ),
  );
}

function readLimits(answer: RpcAnswer | undefined, { assets }: NetworkConfig): readonly AssetLimit[] {
  const { results } = expectAnswer("the contract's limits", answer, (result) =>
    readViews(result, 2 * assets.length),
  );
  const amounts = results.map(({ word }) => (word === undefined ? undefined : BigInt(word)));
  return assets.map((asset, index) => ({
    asset,
    limit: amounts[2 * index],
    available: amounts[2 * index + 1],
  }));
}

function checkCode(
  { name, tier, facilitatorContract }: NetworkConfig,
  { code, admin }: ContractState,
  limits: readonly AssetLimit[],
): Check {
  const variable = contractVariables[tier];
  switch (code) {
    case "ours":
      return ok("contract", `${facilitatorContract} has every function of this version`);
    case "none":
      return failed("contract", `there is no facilitator contract at ${facilitatorContract}`, {
        advice: `Deploy it with ${self} deploy --network ${name}, or correct ${variable}.`,
        fatal: true,
      });
    case "former": {
      const detail = `${facilitatorContract} has the code of a former version, which lacks functions of this one`;
      return failed("contract", detail, {
        advice: `Deploy this version's with ${self} deploy --network ${name}, and put its address before this one: ${variable}=0x…,${facilitatorContract}`,
        fatal: true,
      });
    }
    case "other": {
      const isOlder = admin !== undefined && limits.every(({ limit }) => limit === undefined);
      const older = ": that of an older one, whose recoverer can take all that is stranded";
      const detail = `${facilitatorContract} has other code than this version's contract${isOlder ? older : ""}`;
      return failed("contract", detail, {
        advice: `Correct ${variable}, deploy anew with ${self} deploy --network ${name}, or run the version that deployed it.`,
        fatal: true,
      });
    }
  }
}

function checkLimit({ asset, limit, available }: AssetLimit): readonly Check[] {
  if (limit === undefined || available === undefined) return [];
  const units = unitsOf(asset);
  if (limit === 0n) {
    const detail = `the contract forwards no ${units.symbol}: payments that were submitted directly to the token wait`;
    return [warning("forward limit", detail, "The admin sets the limit, by setForwardLimit.")];
  }
  const detail = `the contract forwards up to ${formatAmount(available, units)} now; its limit is ${formatAmount(limit, units)}`;
  return [ok("forward limit", detail)];
}

function checkPaused({ paused }: ContractState): readonly Check[] {
  if (paused !== true) return [];
  return [
    warning(
      "paused",
      "the contract is paused: nothing settles through it",
      "Its pauser ends that with unpause().",
    ),
  ];
}

function checkMembership(
  { name }: NetworkConfig,
  { role, account, holds }: ContractState["memberships"][number],
): Check {
  const title = `${role.toUpperCase()}_ROLE`;
  if (holds === true) return ok(role, `${account} holds ${title}`, { account });
  if (holds === undefined) {
    const detail = `unknown whether ${account} holds ${title}: the contract has no roles`;
    return failed(role, detail, { account });
  }
  const advice =
    role === "operator"
      ? `The admin grants it: ${self} deploy --network ${name} --grant-operator ${account}`
      : "The admin grants it, by grantRole; without it, leave RECOVERER_PRIVATE_KEY out.";
  return failed(role, `${account} does not hold ${title}`, { advice, account });
}

/** Warns if a key on the server is also the contract's admin. */
function checkAdmin({ admin }: ContractState, accounts: readonly Address[]): readonly Check[] {
  if (admin === undefined || !accounts.some((account) => sameAddress(account, admin))) return [];
  return [
    warning(
      "admin",
      `${admin} is also the admin of the contract: a thief of this server's key would control it`,
      "Hand the admin role to a key that is kept offline, or to a multi-signature wallet.",
    ),
  ];
}

/**
 * Compares `DOMAIN_SEPARATOR()` and `decimals()` of every token with its configured name, version and decimals. A token
 * that is not paid by EIP-3009 has no domain to compare; it only has to exist.
 */
export const assetsCheck: NetworkCheck = {
  name: "asset",
  required: true,
  calls: ({ network }) => [
    callViews(
      [
        ...network.assets.map(({ address }) => domainSeparatorOf(address)),
        ...network.assets.map(({ address }) => decimalsOf(address)),
        ...network.assets.map(({ address }) => codeOf(address)),
      ],
      viewGas,
    ),
  ],
  read([answer], { network }) {
    const { assets } = network;
    const { results } = expectAnswer("the tokens' domains", answer, (result) =>
      readViews(result, 3 * assets.length),
    );
    return assets.map((asset, index) => {
      const check = isPaidBy(asset, "eip3009")
        ? checkAsset(network, asset, results[index]?.word)
        : checkTokenCode(asset, results[2 * assets.length + index]?.codeHash ?? null);
      return check.status === "ok"
        ? checkDecimals(check, asset, results[assets.length + index]?.word)
        : check;
    });
  },
};

/** Checks the decimals, which only affect how amounts are shown. A token that does not report them passes. */
function checkDecimals(good: Check, { decimals }: Pick<Asset, "decimals">, word: Hex | undefined): Check {
  const found = word === undefined ? undefined : BigInt(word);
  if (found === undefined || found === BigInt(decimals)) return good;
  return warning(
    "asset",
    `${good.detail}, but has ${found} decimals, not ${decimals} as configured`,
    "Correct its decimals in ASSETS or the network file: amounts are shown with them.",
  );
}

function checkTokenCode({ address, name }: Asset, codeHash: Hex | null): Check {
  if (codeHash !== null) return ok("asset", `${address} is there (${name})`);
  const advice = "Correct its address in ASSETS.";
  return failed("asset", `there is no contract at ${address}`, { advice, fatal: true });
}

function checkAsset({ chainId, usdc }: NetworkConfig, asset: Asset, separator: Hex | undefined): Check {
  const { address, name, version } = asset;
  const domain = `name "${name}", version "${version}"`;
  const isUsdc = sameAddress(address, usdc.address);
  if (separator === undefined) {
    const advice = isUsdc
      ? "USDC must be there; is this the chain that it says it is?"
      : "Correct its address in ASSETS.";
    return failed("asset", `there is no EIP-3009 token at ${address}`, { advice, fatal: true });
  }
  if (!sameAddress(separator, domainSeparator(asset, chainId))) {
    const advice = isUsdc
      ? "That is not the USDC of this network; is this the chain that it says it is?"
      : "Its name and version in ASSETS must be those of the token's EIP-712 domain.";
    const detail = `the token ${address} signs for another domain than ${domain}`;
    return failed("asset", detail, { advice, fatal: true });
  }
  return ok("asset", `${address} signs for ${domain}`);
}

/** The name of this check, by which readiness finds its result. */
export const permit2CheckName = "Permit2";

/** The x402 proxies, which payers sign for, by scheme. */
const proxies: readonly (readonly [scheme: string, proxy: Address])[] = [
  ["exact", exactProxyAddress],
  ["upto", uptoProxyAddress],
];

/**
 * Checks that Permit2 exists at its public address, and that the x402 proxies exist and use it, if an asset may be paid
 * that way. Nothing else on the network depends on them.
 */
export const permit2Check: NetworkCheck = {
  name: permit2CheckName,
  required: false,
  calls({ network: { assets } }) {
    if (!assets.some((asset) => isPaidBy(asset, "permit2"))) return [];
    return [callViews([codeOf(permit2Address), ...proxies.map(([, proxy]) => permit2Of(proxy))], viewGas)];
  },
  read([answer], { network: { assets } }) {
    if (answer === undefined) return [];
    const { results } = expectAnswer("Permit2", answer, (result) => readViews(result, 1 + proxies.length));
    const [permit2, ...ofProxies] = results;
    if (permit2?.codeHash == null) {
      return [missing(assets, `there is no Permit2 at ${permit2Address}: no payment by Permit2 settles`)];
    }
    const bad = proxies.flatMap(([scheme, proxy], index) => {
      const { codeHash = null, word } = ofProxies[index] ?? {};
      if (word !== undefined && sameAddress(word, `0x${addressWord(permit2Address)}`)) return [];
      const found =
        codeHash === null
          ? "there is no proxy of x402"
          : "what is there is no proxy of x402 that uses Permit2,";
      return [missing(assets, `${found} at ${proxy}: no payment by Permit2 of scheme ${scheme} settles`)];
    });
    const good = `${permit2Address} is there, and both proxies of x402 use it`;
    return bad.length === 0 ? [ok(permit2CheckName, good)] : bad;
  },
};

/** Fails if an asset can be paid in no other way. */
function missing(assets: readonly Asset[], detail: string): Check {
  const advice =
    "Anybody can deploy it there (by CREATE2). Until then verify answers permit2_proxy_not_deployed to such payments; those by EIP-3009 go on.";
  const stuck = assets.filter((asset) => !isPaidBy(asset, "eip3009"));
  if (stuck.length === 0) return warning(permit2CheckName, detail, advice);
  const names = stuck.map(({ name }) => name).join(", ");
  return failed(permit2CheckName, `${detail}, and ${names} can be paid in no other way`, { advice });
}
