/**
 * A line of others for a terminal: control characters (C0, DEL, C1) and those that reorder or break lines are written as
 * their escapes (`\u001b`). A text in JSON stays the same JSON.
 */
export function escapeControls(line: string): string {
  return line.replace(/[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu, escapeOf);
}

/** The same for a text of several lines, which stay lines. */
export function escapeControlsInText(text: string): string {
  return text.replace(/[^\P{Cc}\n\r]|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|\r(?!\n|$)/gu, escapeOf);
}

function escapeOf(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
