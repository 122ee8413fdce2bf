import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { parser } from "@prometheus-io/lezer-promql";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { settleWaitDefaultsMs } from "../src/config/serve-config.ts";
import { describeVariable, variableNames } from "../src/config/variables.ts";
import { createMetrics } from "../src/observe/metrics/metrics.ts";
import { problemSchema } from "../src/protocol/answers.ts";
import { problemMediaType } from "../src/protocol/problems.ts";
import { routes } from "../src/protocol/routes.ts";

/*
 * Everything that production/ names exists: metrics, variables, commands, files and routes. Docker, Prometheus and Grafana are not
 * started here.
 */

const root = new URL("../", import.meta.url);
const read = (path: string) => readFileSync(new URL(path, root), "utf8");

const dockerfile = read("production/Dockerfile");
const stages = dockerfile.split(/^(?=FROM )/m).slice(1);
const [build = "", final = ""] = stages;
const commands = [...read("src/cli/main.ts").matchAll(/\[\s*"([a-z- ]+)",/g)].map(([, name]) => name);

const composeSchema = z.object({
  services: z.record(
    z.string(),
    z.object({
      command: z.array(z.string()).optional(),
      environment: z.record(z.string(), z.string()).optional(),
      volumes: z.array(z.string()).optional(),
      build: z.object({ context: z.string(), dockerfile: z.string() }).optional(),
      read_only: z.boolean().optional(),
      stop_grace_period: z.string().optional(),
      ports: z.array(z.string()).optional(),
      depends_on: z.record(z.string(), z.object({ condition: z.string() })).optional(),
    }),
  ),
});
const compose = composeSchema.parse(parse(read("production/compose.yaml")));

const rulesSchema = z.object({
  groups: z.array(
    z.object({
      rules: z.array(
        z.object({
          alert: z.string(),
          expr: z.string(),
          labels: z.object({ severity: z.enum(["critical", "warning", "info"]) }),
          annotations: z.object({ summary: z.string().min(10), runbook_url: z.url() }),
        }),
      ),
    }),
  ),
});
const alerts = rulesSchema.parse(parse(read("production/alerts.yml"))).groups.flatMap(({ rules }) => rules);

const dashboardSchema = z.object({
  panels: z.array(z.object({ title: z.string(), targets: z.array(z.object({ expr: z.string() })) })),
});
const dashboard = dashboardSchema.parse(JSON.parse(read("production/grafana/dashboards/x402.json")));

/** Every series that the service offers, and what labels it has. */
async function findSeries(): Promise<Map<string, readonly string[]>> {
  const { metrics, register } = await createMetrics();
  metrics.rpc("base", ["base.example"]);
  const found = new Map<string, readonly string[]>();
  for (const { name, type } of await register.getMetricsAsJSON()) {
    const { labelNames = [] } = z
      .object({ labelNames: z.array(z.string()).optional() })
      .parse(register.getSingleMetric(name));
    const suffixes = String(type) === "histogram" ? ["_bucket", "_sum", "_count"] : [""];
    for (const suffix of suffixes) found.set(`${name}${suffix}`, [...labelNames, "le"]);
  }
  // Prometheus itself writes this for every target.
  found.set("up", ["job", "instance"]);
  return found;
}

const expressions = [
  ...alerts.map(({ alert, expr }) => [alert, expr] as const),
  ...dashboard.panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, expr] as const)),
];

/** Where an expression is no PromQL, by the grammar of Prometheus itself. */
function syntaxErrors(expr: string): string[] {
  const found: string[] = [];
  parser.parse(expr).iterate({
    enter({ type, from }) {
      if (type.isError) found.push(`at ${from}: ${expr.slice(from, from + 20)}`);
    },
  });
  return found;
}

test.each(expressions)("%s is PromQL", (_title, expr) => {
  expect(syntaxErrors(expr)).toEqual([]);
  // The grammar recovers from what is wrong, and says where.
  expect(syntaxErrors(`${expr} by (`)).not.toEqual([]);
});

test.each(expressions)("%s asks for metrics and labels that the service has", async (_title, expr) => {
  const series = await findSeries();
  const names = expr.match(/\bx402_\w+|\bup\b/g) ?? [];
  expect(names.length).toBeGreaterThan(0);
  for (const name of names) expect([...series.keys()]).toContain(name);
  const labels = [
    ...[...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = ""]) => list.split(/, */)),
    ...[...expr.matchAll(/[{,]\s*(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label = ""]) => label),
  ];
  const known = names.flatMap((name) => series.get(name) ?? []);
  for (const label of labels) expect(known).toContain(label);
});

test("every alert has its row in docs/observability.md, which says what to do", () => {
  const guide = read("docs/observability.md");
  expect(
    [...guide.matchAll(/^\| <a id="(\w+)"><\/a>`(X402\w+)`/gm)].map(([, id, name]) => [id, name]),
  ).toEqual(alerts.map(({ alert }) => [alert.toLowerCase(), alert]));
  const page = "https://github.com/x402-facilitator-kit/x402-facilitator-kit/blob/main/docs/observability.md";
  for (const { alert, annotations } of alerts)
    expect(annotations.runbook_url).toBe(`${page}#${alert.toLowerCase()}`);
});

test("an instance that is down, and one that nobody scrapes, raise an alert", () => {
  const down = alerts.find(({ alert }) => alert === "X402Down");
  const job = z
    .object({ scrape_configs: z.array(z.object({ job_name: z.string() })) })
    .parse(parse(read("production/prometheus.yml"))).scrape_configs[0]?.job_name;
  expect(down?.expr).toContain(`up{job="${job}"} == 0`);
  expect(down?.expr).toContain(`absent(up{job="${job}"})`);
  expect(down?.labels.severity).toBe("critical");
});

test("the image runs as an unprivileged user, without what is for development", () => {
  expect(final).toMatch(/^USER node$/m);
  expect(build.match(/^RUN npm ci .*$/gm)?.at(-1)).toContain("--omit=dev --omit=optional");
  const [, args = ""] = /^ENTRYPOINT (.*)$/m.exec(final) ?? [];
  const [, command = ""] = /^CMD (.*)$/m.exec(final) ?? [];
  expect([...JSON.parse(args), ...JSON.parse(command)]).toEqual(["node", "/app/dist/cli/bin.js", "serve"]);
  const { bin, files } = z
    .object({ bin: z.object({ "x402-kit": z.string() }), files: z.array(z.string()) })
    .parse(JSON.parse(read("package.json")));
  expect(bin["x402-kit"]).toBe("./dist/cli/bin.js");
  const copied = [...final.matchAll(/^COPY --from=build \/build\/(\S+)/gm)].map(([, path = ""]) => path);
  expect(copied).toEqual(["package.json", "node_modules", "networks", "dist"]);
  expect(files).toEqual(expect.arrayContaining(["networks", "dist"]));
  expect(final).toContain(`EXPOSE ${describeVariable("PORT").default}`);
});

/** A script with all that it imports of this repository. */
function filesOf(script: string): string[] {
  const imported = [...read(script).matchAll(/^(?:import|export)\s[^"(]*"(\.[^"]+)"/gm)];
  return [script, ...imported.flatMap(([, path = ""]) => filesOf(join(dirname(script), path)))];
}

test("what the image is built from exists, and what is copied is not ignored", () => {
  const kept = [...read("production/Dockerfile.dockerignore").matchAll(/^!(\S+)$/gm)].map(
    ([, path = ""]) => path,
  );
  for (const path of kept.filter((one) => !one.includes("*")))
    expect(existsSync(new URL(path, root))).toBe(true);
  for (const path of [
    "package.json",
    "package-lock.json",
    ...filesOf("scripts/build.ts"),
    "src",
    "networks",
  ]) {
    expect(kept).toContain(path);
  }
});

test.each([
  { answers: "well", status: 200, code: 0 },
  { answers: "badly", status: 503, code: 1 },
  { answers: "not at all", status: undefined, code: 1 },
])("the health check of the image tells a service that answers $answers", async ({ status, code }) => {
  const [, health = ""] = /^HEALTHCHECK [\s\S]*?\n\s+CMD (\[.*\])$/m.exec(final) ?? [];
  const [file = "", ...args] = z.array(z.string()).parse(JSON.parse(health));
  expect(file).toBe("node");
  const asked: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url);
    response.writeHead(status ?? 200).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = z.object({ port: z.int() }).parse(server.address());
  if (status === undefined) server.close();
  try {
    const run = promisify(execFile)(process.execPath, args, { env: { PORT: String(port) } });
    expect(
      await run.then(
        () => 0,
        (error: { code: number }) => error.code,
      ),
    ).toBe(code);
    expect(asked).toEqual(status === undefined ? [] : [...routes.livez.paths]);
  } finally {
    server.close();
  }
});

test("compose sets variables that are read, mounts files that are there, and outlasts the shutdown", () => {
  const { facilitator, postgres, prometheus, grafana } = compose.services;
  expect([postgres, prometheus, grafana]).not.toContain(undefined);
  for (const name of Object.keys(facilitator?.environment ?? {})) expect(variableNames).toContain(name);
  expect(commands).toContain(facilitator?.command?.[0]);
  expect(facilitator?.read_only).toBe(true);
  expect(
    existsSync(new URL(`production/${facilitator?.build?.context}/${facilitator?.build?.dockerfile}`, root)),
  ).toBe(true);
  expect(Number.parseInt(facilitator?.stop_grace_period ?? "", 10) * 1_000).toBeGreaterThan(
    Number(describeVariable("SHUTDOWN_TIMEOUT_MS").default),
  );
  const mounted = Object.values(compose.services).flatMap(({ volumes = [] }) =>
    volumes.filter((one) => one.startsWith("./")),
  );
  expect(mounted.length).toBeGreaterThan(3);
  for (const volume of mounted)
    expect(existsSync(new URL(`production/${volume.split(":")[0]}`, root))).toBe(true);
  for (const [name, { depends_on = {} }] of Object.entries(compose.services)) {
    for (const other of Object.keys(depends_on))
      expect(`${name} ${Object.keys(compose.services)}`).toContain(other);
  }
  // Everything is for this machine; a proxy stands before it.
  const ports = Object.values(compose.services).flatMap(({ ports: published = [] }) => published);
  for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/);
});

test("no service starts with a default password: compose asks for each", () => {
  const required = (name: string) => new RegExp(`\\$\\{${name}:\\?[^}]{10,}\\}`);
  const { facilitator, postgres, grafana } = compose.services;
  expect(facilitator?.environment?.DATABASE_URL).toMatch(required("POSTGRES_PASSWORD"));
  expect(postgres?.environment?.POSTGRES_PASSWORD).toMatch(required("POSTGRES_PASSWORD"));
  expect(grafana?.environment?.GF_SECURITY_ADMIN_PASSWORD).toMatch(required("GRAFANA_PASSWORD"));
});

test("Prometheus finds the service where compose has it", () => {
  const { scrape_configs, rule_files } = z
    .object({
      rule_files: z.array(z.string()),
      scrape_configs: z.array(
        z.object({ static_configs: z.array(z.object({ targets: z.array(z.string()) })) }),
      ),
    })
    .parse(parse(read("production/prometheus.yml")));
  const { METRICS_PORT } = compose.services.facilitator?.environment ?? {};
  expect(scrape_configs[0]?.static_configs[0]?.targets).toEqual([`facilitator:${METRICS_PORT}`]);
  for (const file of rule_files) expect(existsSync(new URL(`production/${file}`, root))).toBe(true);
});

test("Grafana's provisioning is YAML, and names where the dashboard is mounted", () => {
  const folder = new URL("production/grafana/provisioning/", root);
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    if (name.endsWith(".yml"))
      expect(parse(readFileSync(new URL(name, folder), "utf8"))).toMatchObject({ apiVersion: 1 });
  }
  expect(read("production/grafana/provisioning/dashboards/x402.yml")).toContain(
    "/var/lib/grafana/dashboards",
  );
  expect(compose.services.grafana?.volumes?.join()).toContain(":/var/lib/grafana/dashboards");
});

test("the system service starts a command that exists, and is the one of the guide", () => {
  const unit = read("production/x402-kit.service");
  const [, path = "", command = ""] =
    /^ExecStart=\S+ \S*x402-facilitator-kit\/(\S+) (\S+)$/m.exec(unit) ?? [];
  expect([path, commands.includes(command)]).toEqual(["dist/cli/bin.js", true]);
  const [, seconds] = /^TimeoutStopSec=(\d+)$/m.exec(unit) ?? [];
  expect(Number(seconds) * 1_000).toBeGreaterThan(Number(describeVariable("SHUTDOWN_TIMEOUT_MS").default));
  expect(read("docs/guides/operations.md")).toContain("production/x402-kit.service");
  // A database that is away for longer than a few starts must not leave the unit failed.
  expect(unit).toMatch(/^StartLimitIntervalSec=0$/m);
});

test("the documented copy of the database can be read by its owner only", () => {
  const copies = [...read("docs/guides/operations.md").matchAll(/`([^`]*\.backup[^`]*)`/g)];
  expect(copies.length).toBeGreaterThan(0);
  for (const [, command] of copies) expect(command).toMatch(/^\(umask 077; sqlite3 .*\)$/);
});

test("the proxies wait longer than a settle, and leave it to the caller to repeat one", () => {
  const longest = Math.max(settleWaitDefaultsMs[1], settleWaitDefaultsMs[2]) / 1_000;
  const nginx = read("production/nginx.conf");
  const haproxy = read("production/haproxy.cfg");
  const waits = [/proxy_read_timeout (\d+)s;/.exec(nginx), /timeout server +(\d+)s/.exec(haproxy)];
  for (const wait of [...waits, /timeout client +(\d+)s/.exec(haproxy)]) {
    expect(Number(wait?.[1])).toBeGreaterThan(longest);
  }
  expect(nginx).toContain("proxy_next_upstream off;");
  expect(haproxy).toMatch(/^ {2}retries 0$/m);
});

test("HAProxy sends callers to instances that live when none is ready", () => {
  const haproxy = read("production/haproxy.cfg");
  const [, ready = "", alive = ""] = haproxy.split(/^backend \w+$/m);
  expect(haproxy).toMatch(/^ {2}use_backend alive if \{ nbsrv\(ready\) eq 0 \}$/m);
  expect(ready).toContain(`option httpchk GET ${routes.readyz.paths[0]}`);
  expect(alive).toContain(`option httpchk GET ${routes.livez.paths[0]}`);
  const servers = (text: string) => text.match(/^ {2}server .*$/gm);
  expect(servers(alive)).toEqual(servers(ready));
});

test.each([500, 502, 503, 504])("a proxy's own %i is a problem that no client signs again for", (status) => {
  const haproxy = read("production/haproxy.cfg")
    .split("\n")
    .find((one) => one.includes(`http-error status ${status} content-type ${problemMediaType} `));
  const nginx = read("production/nginx.conf");
  const [, codes = ""] = /error_page ([\d ]+) @no_verdict;/.exec(nginx) ?? [];
  expect(codes.split(" ")).toContain(`${status}`);
  const [, location = ""] = nginx.split("location @no_verdict {");
  expect(location).toContain(`default_type ${problemMediaType};`);
  const answers = [
    /string '(?<json>[^']+)' hdr Retry-After (?<seconds>\d+)$/.exec(haproxy ?? ""),
    /add_header Retry-After (?<seconds>\d+) always;\s+return 503 '(?<json>[^']+)';/.exec(location),
  ].map((found) => ({
    json: found?.groups?.json?.replace("$status", `${status}`) ?? "",
    seconds: found?.groups?.seconds,
  }));
  for (const { json, seconds } of answers) {
    expect(problemSchema.parse(JSON.parse(json))).toMatchObject({
      status,
      situation: "no_verdict",
      nextAction: "retry_same_payment",
      paymentState: "unknown",
      retryAfterSeconds: Number(seconds),
    });
  }
});
