/** All that is used of the package: its other exports bring a proxy and web sockets. */
export { createAnvil } from "@viem/anvil";
