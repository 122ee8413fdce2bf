/** An advice, with the command that does it on a local chain. */
export function withLocal(fix: string, command: string | undefined): string {
  return command === undefined ? fix : `${fix.replace(/\.$/, "")}. On a local chain: \`${command}\`.`;
}

/** The same advice without that command, where it stands elsewhere. */
export function withoutLocal(advice: string): string {
  return advice.replace(/ On a local chain: `[^`]+`\.$/, "");
}
