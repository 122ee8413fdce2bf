import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { afterAll, expect, test } from "vitest";
import { programFile } from "../../support/programs.ts";
import { createRandom } from "../../support/random.ts";
import { value } from "../../support/recovery-scene.ts";
import { type RecoveryStep, recoverySteps } from "../../support/recovery-steps.ts";
import { useRecoveryScene } from "../../support/use-composition.ts";

/*
 * kill -9 at any point of a recovery: the next process finds it, and the recipient is paid once.
 */

const kills = Number(process.env.RECOVERY_KILL_REPETITIONS ?? 1) * recoverySteps.length;
const random = createRandom();
const steps: RecoveryStep[] = [];
while (steps.length < kills) steps.push(...random.shuffle(recoverySteps));
/** Half of them at the step itself, the others a little later. */
const points = steps
  .slice(0, kills)
  .map((step) => ({ step, afterMs: random.between(0, 1) * random.between(1, 120) }));

const scene = useRecoveryScene();
const children = new Set<ChildProcess>();
afterAll(() => {
  for (const child of children) child.kill("SIGKILL");
});

/** Starts a service that will kill itself. */
async function startDoomed(point: {
  step: RecoveryStep;
  afterMs: number;
}): Promise<{ child: ChildProcess; url: string }> {
  const { rpcUrl, facilitatorContract } = scene.chain;
  const options = {
    rpcUrl,
    facilitatorContract,
    databaseUrl: scene.databaseUrl(),
    dieAt: point.step,
    afterMs: point.afterMs,
  };
  const script = programFile("test/support/recovery-child.ts");
  const child = spawn(process.execPath, [script, JSON.stringify(options)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.add(child);
  const [url] = await Promise.race([
    once(createInterface(child.stdout), "line"),
    once(child, "exit").then(([code]) => {
      throw new Error(`the service ended with ${code} before it was ready`);
    }),
  ]);
  return { child, url: `${url}/v1` };
}

test.each(points)(`killed when $step, $afterMs ms later (seed ${random.seed})`, async (point) => {
  const before = await scene.recovererTransactions();
  const strandedBefore = await scene.stranded();
  // Makes the organizations, whose keys the process that dies knows as well.
  const first = await scene.startService();
  const body = await scene.sign("funded");
  await scene.end(first);

  const doomed = await startDoomed(point);
  const died = once(doomed.child, "exit");
  const release = await scene.holdMining();
  const answer = scene.post({ ...first, url: doomed.url }, "settle", body).then(
    ({ body: answered }) => (answered as { success: boolean }).success,
    () => false,
  );
  await scene.untilInPool(1);
  await scene.sendAhead(scene.submission(body));
  await scene.chain.node.request("evm_mine");
  await release();
  expect((await died)[1]).toBe("SIGKILL");
  const answered = await answer;

  const second = await scene.startService();
  await scene.untilState(second, body, "recovered");
  const repeat = await scene.settleUntilDecided(second, body);
  expect([answered, repeat]).toContain(true);
  expect(await scene.balanceOf(scene.recipient())).toBe(value);
  expect(await scene.stranded()).toBe(strandedBefore);
  expect(await scene.recovererTransactions()).toBe(before + 1);
});
