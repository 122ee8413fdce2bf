/** How Node starts the shop, which listens at PORT. */
export const command = ["shop.ts"];
export const variables = {};
