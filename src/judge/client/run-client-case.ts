import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { NetworkName } from "../../protocol/networks.ts";
import { type CasePayer, goodsOf, payerOf } from "../scene/payers.ts";
import { type CommandEnd, endWithin, startCommand } from "../scene/run-command.ts";
import type { Scene } from "../scene/scene.ts";
import type { TokenTransfer } from "../scene/transfers.ts";
import { createCaseShop, type Exchange } from "./case-shop.ts";
import type { ClientCase } from "./client-case.ts";
import type { JudgeClientOptions } from "./client-options.ts";
import { type ClientVerdict, judgeClientFacts } from "./client-verdict.ts";
import type { Shops } from "./shops.ts";

/** The result of a case on one network. */
export type ClientResult = {
  tested: ClientCase;
  network: NetworkName;
  verdict: ClientVerdict;
  transfers: readonly TokenTransfer[];
  runs: readonly ClientRun[];
  exchanges: readonly Exchange[];
  /** Links to the payments in the studio, if it runs. */
  links: readonly string[];
  tookMs: number;
};

/** The result of one process of the client. */
export type ClientRun = {
  /** Undefined when it was killed. */
  end: CommandEnd | undefined;
  /** Whether it printed or saved the goods. */
  served: boolean;
  stdout: string;
  stderr: string;
};

/** Runs the client in one case and judges it. */
export async function runClientCase(
  tested: ClientCase,
  scene: Scene,
  shops: Shops,
  options: JudgeClientOptions,
): Promise<ClientResult> {
  const { seed, versions, header, slowMs } = options;
  const startedAt = performance.now();
  const name = `${scene.network.name}/${tested.name}`;
  const payer = payerOf(seed, name);
  const goods = goodsOf(seed, name);
  await scene.fund(payer.address);
  const resource = shops.resourceOf(name);
  const shop = createCaseShop({ tested, scene, versions, resource, goods, payer, header, slowMs });
  shops.open(name, shop);
  const runs = await Promise.all(
    Array.from({ length: tested.runs ?? 1 }, () => runOnce(scene, resource, payer, goods, options)),
  );
  await shop.idle();
  const transfers = await scene.transfersFrom(payer.address);
  const verdict = judgeClientFacts({
    transfers,
    allowed: scene.offer,
    runs: runs.length,
    served: runs.filter(({ served }) => served).length,
    outlivedItsTime: runs.some(({ end }) => end === undefined),
  });
  const network = scene.network.name;
  const tookMs = Math.round(performance.now() - startedAt);
  const { exchanges } = shop;
  const links = new Set(
    exchanges.flatMap(({ payment }) =>
      payment === undefined || scene.studioUrl === undefined
        ? []
        : [`${scene.studioUrl}#${payment.settlementId}`],
    ),
  );
  return { tested, network, verdict, transfers, runs, exchanges, links: [...links], tookMs };
}

async function runOnce(
  scene: Scene,
  resource: string,
  payer: CasePayer,
  goods: string,
  { command, header, timeoutMs, signal }: JudgeClientOptions,
): Promise<ClientRun> {
  const { network, asset, amount } = scene.offer;
  const folder = await mkdtemp(join(tmpdir(), "x402-kit-judge-"));
  const output = join(folder, "output");
  try {
    await using running = await startCommand(command, {
      X402_URL: resource,
      X402_PRIVATE_KEY: payer.privateKey,
      X402_NETWORK: network.name,
      X402_CAIP2: network.caip2,
      X402_ASSET: asset.address,
      X402_MAX_AMOUNT: `${amount}`,
      X402_OUTPUT: output,
      ...(header !== undefined && { X402_HEADER: `${header.name}: ${header.value}` }),
    });
    const end = await endWithin(running, timeoutMs, signal);
    if (end !== undefined) await running.outputEnded;
    const saved = await readFile(output, "utf8").catch(() => "");
    const stdout = running.stdout();
    return { end, served: `${stdout}${saved}`.includes(goods), stdout, stderr: running.stderr() };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
