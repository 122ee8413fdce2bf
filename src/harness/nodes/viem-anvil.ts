/** The only export we use: the package's others pull in a proxy and WebSockets. */
export { createAnvil } from "@viem/anvil";
