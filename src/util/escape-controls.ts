/**
 * Text of others for a terminal: control characters (C0, DEL, C1) and those that reorder or break lines are written as
 * their escapes (`\u001b`). A text in JSON stays the same JSON.
 */
export function escapeControls(text: string): string {
  return text.replace(
    /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
