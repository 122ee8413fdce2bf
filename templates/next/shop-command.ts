/** How Node starts the shop, which listens at PORT. Next takes what the environment has before what `.env` has. */
export const command = ["node_modules/next/dist/bin/next", "dev", "--hostname", "127.0.0.1"];
export const variables = { NEXT_TELEMETRY_DISABLED: "1" };
