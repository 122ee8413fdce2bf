import { z } from "zod";
import { type ErrorCode, errorCodes } from "../../util/error-codes.ts";
import { KitError } from "../../util/errors.ts";
import { requestJson } from "../../util/http-client.ts";
import { firstPlace } from "../../util/text.ts";
import { mostUnpacked } from "../../util/unpack.ts";
import type { ControlledHarness } from "../run/running-harness.ts";
import { type Action, type AnyAction, actions } from "./actions.ts";

/** The function type of an action; without a body it takes no argument. */
type Call<Row> =
  Row extends Action<infer Body, infer Answer>
    ? (...body: Body extends Record<string, never> ? [] : [body: Body]) => Promise<Answer>
    : never;

/** The actions on a running harness, in this process or another. */
export type HarnessControl = {
  readonly [Name in keyof typeof actions]: Call<(typeof actions)[Name]>;
};

/** Creates a control that performs each action with `act`. */
function controlBy(act: (action: AnyAction, body: object) => Promise<unknown>): HarnessControl {
  const calls = Object.entries<AnyAction>(actions).map(([name, action]) => [
    name,
    (body = {}) => act(action, body),
  ]);
  return Object.fromEntries(calls) as HarnessControl;
}

export const controlOf = (harness: ControlledHarness): HarnessControl =>
  controlBy(async ({ run }, body) => run(harness, body));

const refusalSchema = z.object({
  error: z.string(),
  // Another version may have other codes.
  code: z.enum(Object.keys(errorCodes) as ErrorCode[]).catch("failed"),
  because: z.array(z.string()).default([]),
  hints: z.array(z.string()).default([]),
});

/**
 * Creates the control of a harness in another process, over its routes `/harness/…`.
 *
 * @param origin such as `http://127.0.0.1:4402`
 * @throws {KitError} from every method, if the harness refuses or cannot be reached
 */
export function createControlClient(origin: string): HarnessControl {
  return controlBy(async ({ route, answer }, body) => {
    const [method = "", path] = route.split(" ");
    const request = method === "GET" ? {} : { method, body, maxBytes: mostUnpacked };
    const answered = await requestJson(`${origin}${path}`, request);
    if (answered.status === 200) {
      const read = answer.safeParse(answered.body);
      if (read.success) return read.data;
      throw new KitError(`${origin} answers ${route} with something else than a harness does`, {
        cause: new Error(`${firstPlace(read.error)} is not as expected`),
        code: "unexpected-answer",
        hints: ["Is it an `up` of another version than this command?"],
      });
    }
    const { data } = refusalSchema.safeParse(answered.body);
    throw new KitError(
      data?.error ?? `The harness at ${origin} refused ${route}: status ${answered.status}`,
      {
        cause: data?.because.reduceRight<Error | undefined>(
          (cause, message) => new Error(message, { cause }),
          undefined,
        ),
        code: data?.code ?? "unexpected-answer",
        hints: data?.hints ?? [],
      },
    );
  });
}
