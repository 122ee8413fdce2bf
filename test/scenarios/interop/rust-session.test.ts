import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { startMockServer } from "../../../src/fixtures/mock-server/index.ts";
import { repository } from "../../support/cli.ts";

/* examples/rust/src/session.rs, which needs no libraries. Where there is no rustc it cannot be run, which is printed. */

const run = promisify(execFile);

const program = `
#[path = "${join(repository, "examples/rust/src/session.rs")}"]
mod session;
fn main() -> std::io::Result<()> {
    let session = session::Session::new(&std::env::args().nth(1).unwrap())?;
    println!("{}", session.scenario(r#"{"name":"settle.insufficient_funds"}"#)?);
    println!("{}", session.payment(r#"{"amount":"5"}"#)?.contains("settleBody"));
    println!("{}", session.calls()?);
    println!("{}", session.scenario(r#"{"name":"settle.nope"}"#).is_err());
    Ok(())
}
`;

test("a session in Rust has payments signed and outcomes chosen, by the standard library alone", async () => {
  await using mock = await startMockServer();
  const folder = await mkdtemp(join(tmpdir(), "x402-rust-session-"));
  try {
    await writeFile(join(folder, "main.rs"), program);
    await run("rustc", ["--edition", "2021", "-o", join(folder, "main"), join(folder, "main.rs")]);
    const { stdout } = await run(join(folder, "main"), [new URL(mock.url).host]);
    expect(stdout.split("\n")).toEqual([
      '{"scenarios":[{"name":"settle.insufficient_funds.empty","times":1}]}',
      "true",
      "[]",
      "true",
      "",
    ]);
  } catch (error) {
    if (Reflect.get(Object(error), "code") !== "ENOENT") throw error;
    console.warn("There is no rustc here: examples/rust/src/session.rs was not run");
  } finally {
    await rm(folder, { recursive: true });
  }
}, 120_000);
