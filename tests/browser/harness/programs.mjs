// The programs that a flow needs: a server with a kit for tests, Azurite, and `tables explore`. It knows no browser.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { TableServer } from "../../../examples/other_languages/javascript/testkit.mjs";
import { company } from "./data.mjs";

const HOST = "127.0.0.1";
const programs = process.env.TABLESDK_PROGRAMS ?? "target/debug";
const TABLES = join(programs, "tables");
process.env.TABLESDK_SERVER ??= join(programs, "tablesdk-server");
const KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/** Runs `tables` to its end, and returns standard output. */
export async function tables(account, words, input = "") {
  const child = spawn(TABLES, words, { env: { AZURE_STORAGE_CONNECTION_STRING: account } });
  let out = "";
  let errors = "";
  child.stdout.setEncoding("utf8").on("data", (text) => (out += text));
  child.stderr.setEncoding("utf8").on("data", (text) => (errors += text));
  child.stdin.on("error", () => {}).end(input);
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`tables ${words.join(" ")} ended with ${code}: ${errors}`);
  return out;
}

/** The tables of the company in an account. */
async function fill(account, options) {
  const { lines, empty } = company(options);
  await tables(account, ["import", "-"], lines);
  for (const table of empty) {
    const line = JSON.stringify({ PartitionKey: "p", RowKey: "r" });
    await tables(account, ["put", table, "--create", "--insert"], line);
    await tables(account, ["rm", table, "p", "r"]);
  }
}

/** Our server, in memory, with the tables of the company. */
export class Server {
  static async start() {
    const server = new Server();
    server.kit = await TableServer.start();
    server.account = server.kit.connectionString;
    await fill(server.account);
    server.filled = await server.kit.snapshot();
    return server;
  }

  name = "tablesdk-server";

  /** The connection string of an account as it was when it was filled, without faults and with no recorded request. */
  async fresh() {
    await this.kit.call("DELETE", "/faults");
    // A flow may have moved it.
    await this.kit.setClock(new Date().toISOString());
    await this.kit.call("POST", "/clock", { kind: "resume" });
    await this.kit.restore(this.filled);
    await this.kit.call("DELETE", "/requests");
    return this.account;
  }

  stop() {
    this.kit.stop();
  }
}

async function freePort() {
  const server = createServer().listen(0, HOST);
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/** Azurite in memory, with an account for each flow: it has no snapshots. */
export class Azurite {
  static async start(program, accounts) {
    const azurite = new Azurite();
    const names = Array.from({ length: accounts }, (_, index) => `flow${index}`);
    azurite.port = await freePort();
    const words = ["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--tableHost", HOST, "--tablePort", String(azurite.port)];
    const env = { ...process.env, AZURITE_ACCOUNTS: names.map((name) => `${name}:${KEY}`).join(";") };
    azurite.child = spawn(program, words, { env, stdio: ["ignore", "pipe", "inherit"] });
    azurite.names = names;
    for await (const line of createInterface(azurite.child.stdout)) {
      if (line.includes("successfully started")) break;
    }
    azurite.child.stdout.resume();
    return azurite;
  }

  name = "Azurite";

  async fresh() {
    const name = this.names.pop();
    const account = `DefaultEndpointsProtocol=http;AccountName=${name};AccountKey=${KEY};TableEndpoint=http://${HOST}:${this.port}/${name}`;
    await fill(account, { small: true });
    return account;
  }

  stop() {
    this.child.kill();
  }
}

/** `tables explore`, with a configuration folder of its own. */
export class Explore {
  static async start(account, words = [], home = undefined) {
    const explore = new Explore();
    explore.home = home ?? (await mkdtemp(join(tmpdir(), "tablesdk-explore-")));
    const env = { PATH: process.env.PATH, HOME: explore.home, XDG_CONFIG_HOME: explore.home, AZURE_STORAGE_CONNECTION_STRING: account };
    explore.child = spawn(TABLES, ["explore", "--no-open", ...words], { env });
    explore.errors = "";
    explore.child.stderr.setEncoding("utf8").on("data", (text) => (explore.errors += text));
    const { value: line } = await createInterface(explore.child.stdout)[Symbol.asyncIterator]().next();
    if (line === undefined) throw new Error(`tables explore did not start: ${explore.errors}`);
    /** The URL that is used once, with the token. */
    explore.opening = line;
    explore.origin = new URL(line).origin;
    return explore;
  }

  /** The memory of the program, in bytes. */
  async memory() {
    const { readFile } = await import("node:fs/promises");
    const status = await readFile(`/proc/${this.child.pid}/status`, "utf8");
    return Number(/VmRSS:\s+(\d+) kB/u.exec(status)[1]) * 1024;
  }

  async stop({ keep = false } = {}) {
    const closed = once(this.child, "close");
    this.child.kill();
    await closed;
    if (!keep) await rm(this.home, { recursive: true });
  }
}
