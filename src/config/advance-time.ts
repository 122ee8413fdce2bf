/** The most that the time of a local chain moves forward at once, in seconds: a hundred years. */
export const longestAdvanceSeconds = 3_155_760_000;
