import { execFile } from "node:child_process";
import { copyFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { startMockServer } from "../../../src/fixtures/mock-server/index.ts";
import { repository } from "../../support/cli.ts";

/*
 * The session helpers of examples/go and examples/rust, which need no libraries. Where there is no compiler they cannot be run,
 * which is printed.
 */

const run = promisify(execFile);

type Helper = {
  file: string;
  /** A program that uses the helper beside it, with the mock's host and port as its argument. */
  program: { name: string; text: string };
  /** Builds `main` of them. */
  build: readonly [compiler: string, ...args: string[]];
};

const helpers = {
  rust: {
    file: "examples/rust/src/session.rs",
    program: {
      name: "main.rs",
      text: `
mod session;
fn main() -> std::io::Result<()> {
    let session = session::Session::new(&std::env::args().nth(1).unwrap())?;
    println!("{}", session.scenario(r#"{"name":"settle.insufficient_funds"}"#)?.contains("empty"));
    println!("{}", session.payment(r#"{"amount":"5"}"#)?.contains("settleBody"));
    println!("{}", session.calls()?);
    println!("{}", session.scenario(r#"{"name":"settle.nope"}"#).is_err());
    Ok(())
}
`,
    },
    build: ["rustc", "--edition", "2021", "-o", "main", "main.rs"],
  },
  go: {
    file: "examples/go/session.go",
    program: {
      name: "main.go",
      text: `package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
)

func main() {
	session, err := NewSession("http://" + os.Args[1])
	if err != nil {
		panic(err)
	}
	fmt.Println(session.Scenario("settle.insufficient_funds", 1) == nil)
	payment, err := session.Payment(map[string]any{"amount": "5"})
	fmt.Println(err == nil && payment.Header.Name != "" && payment.Payer != "")
	calls, err := session.Calls()
	fmt.Println(calls, err)
	request, _ := http.NewRequest("POST", session.URL+"/settle", strings.NewReader(string(payment.SettleBody)))
	request.Header.Set("Authorization", session.APIKey)
	request.Header.Set("Content-Type", "application/json")
	if _, err := http.DefaultClient.Do(request); err != nil {
		panic(err)
	}
	calls, err = session.Calls()
	fmt.Println(calls[0].Operation, calls[0].Scenario, err)
	fmt.Println(session.AdvanceTime(60), session.Scenario("settle.nope", 1) != nil, session.Close())
	fmt.Println(session.AdvanceTime(60) != nil)
}
`,
    },
    build: ["go", "build", "-o", "main", "main.go", "session.go"],
  },
} as const satisfies Record<string, Helper>;

/** What the program prints, line by line; undefined where there is no compiler. */
async function runWith({ file, program, build }: Helper, host: string): Promise<string[] | undefined> {
  const folder = await mkdtemp(join(tmpdir(), "x402-session-"));
  const [compiler, ...args] = build;
  try {
    await copyFile(join(repository, file), join(folder, file.split("/").at(-1) ?? ""));
    await writeFile(join(folder, program.name), program.text);
    await run(compiler, args, { cwd: folder });
    const { stdout } = await run(join(folder, "main"), [host], { timeout: 30_000 });
    return stdout.trim().split("\n");
  } catch (error) {
    if (Reflect.get(Object(error), "code") !== "ENOENT") throw error;
    console.warn(`There is no ${compiler} here: ${file} was not run`);
    return undefined;
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Both choose an outcome, have a payment signed, ask for the calls, and are told of a scenario that there is not. */
const expected = {
  rust: ["true", "true", "[]", "true"],
  go: [
    ...["true", "true", "[] <nil>", "settle settle.insufficient_funds.empty <nil>"],
    ...["<nil> true <nil>", "true"],
  ],
};

test.each(["rust", "go"] as const)(
  "a session in %s has payments signed and outcomes chosen, by the standard library alone",
  async (language) => {
    await using mock = await startMockServer();
    const printed = await runWith(helpers[language], new URL(mock.url).host);
    if (printed !== undefined) expect(printed).toEqual(expected[language]);
  },
  120_000,
);
