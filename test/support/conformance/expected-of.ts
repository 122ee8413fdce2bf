import { type FixtureAnswer, isBegun } from "../../../src/fixtures/engine/answer.ts";
import { loosen } from "./loosen.ts";

/** The headers that carry meaning; others belong to the connection. */
const telling =
  /^(content-type|allow|location|retry-after|www-authenticate|x-settlement-state|access-control-.*)$/;

/** The mock's response, without members that only one of the two can know. */
export function expectedOf(answer: FixtureAnswer): FixtureAnswer {
  if (!isBegun(answer)) return answer;
  const headers = Object.fromEntries(Object.entries(answer.headers).filter(([name]) => telling.test(name)));
  if (answer.kind !== "json") return { ...answer, headers };
  return loosen({ ...answer, headers });
}
