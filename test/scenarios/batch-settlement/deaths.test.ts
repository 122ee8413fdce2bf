import { testChannelDeaths } from "../../support/channel-deaths.ts";
import { useComposition } from "../../support/use-composition.ts";

/* kill -9 between the claim of what is asked for on a channel and its answer; the release tests try every step. */

testChannelDeaths(useComposition(), (isPostgres) =>
  isPostgres ? ["claimed, not broadcast"] : ["mined, not recorded"],
);
