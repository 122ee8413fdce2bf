import { testChannelDeaths } from "../../support/channel-deaths.ts";
import { boundaries } from "../../support/crash/boundaries.ts";
import { useComposition } from "../../support/use-composition.ts";

/* kill -9 at every step between the claim of what is asked for on a channel and its answer. */

testChannelDeaths(useComposition(), () => boundaries);
