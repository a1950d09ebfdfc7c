// A table server for the tests of a file, with faults, recorded requests, a clock and snapshots.
//
// Copy this file next to your tests. It needs Node 20 and the program `tablesdk-server`: in PATH, or named by TABLESDK_SERVER.
//
//   const server = await TableServer.start();
//   beforeEach(() => server.reset());
//   after(() => server.stop());

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** A running `tablesdk-server --test`. `GET /test/openapi.json` describes the bodies of rules and requests. */
export class TableServer {
  #process;
  #kit;

  static async start() {
    const program = process.env.TABLESDK_SERVER ?? "tablesdk-server";
    // The server ends with its standard input: in `stop`, or when this process ends.
    const child = spawn(program, ["--test", "--exit-with-stdin"], { stdio: ["pipe", "pipe", "inherit"] });
    const { value: line } = await createInterface(child.stdout)[Symbol.asyncIterator]().next();
    if (line === undefined) throw new Error(`${program} --test did not start`);
    // A test file that fails early ends nevertheless.
    for (const handle of [child, child.stdin, child.stdout]) handle.unref();
    const started = JSON.parse(line);
    const server = new TableServer();
    server.#process = child;
    server.#kit = started.test;
    server.testEndpoint = started.test;
    server.connectionString = started.connectionString;
    server.endpoint = started.endpoint;
    return server;
  }

  stop() {
    this.#process.stdin.end();
  }

  /** Sends a request to the kit. A refusal is an error with the reason. */
  async call(method, path, body) {
    const content = typeof body === "string" ? body : JSON.stringify(body);
    const response = await fetch(this.#kit + path, { method, body: content });
    const isJson = response.headers.get("content-type") === "application/json";
    const value = isJson ? await response.json() : await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${value.error}`);
    return value;
  }

  /** Deletes tables, faults, snapshots and recorded requests, and lets the clock run. */
  async reset() {
    await this.call("POST", "/reset");
  }

  /** Injects a fault into the requests that a rule selects, such as `{ operations: ["InsertEntity"], times: 2 }`. Returns its id. */
  async inject(fault, rule = {}) {
    return (await this.call("POST", "/faults", { ...rule, fault })).id;
  }

  /** The number of requests that a fault has hit. */
  async hits(faultId) {
    return (await this.call("GET", `/faults/${faultId}`)).hits;
  }

  async clearFaults() {
    await this.call("DELETE", "/faults");
  }

  /** Limits entities per second: `{ perPartition: 2000, perAccount: 20000 }` are the targets of the service. */
  async throttle(rates) {
    await this.call("PUT", "/throttle", rates);
  }

  /** The recorded requests, or those of an operation. */
  async requests(operation) {
    const requests = await this.call("GET", "/requests");
    return requests.filter((request) => operation === undefined || request.operation === operation);
  }

  /** What the recorded requests say about the design of tables. */
  async lints() {
    return await this.call("GET", "/lints");
  }

  /** Stops the clock at a time, such as "2030-01-31T12:00:00Z". */
  async setClock(time) {
    await this.call("POST", "/clock", { kind: "set", time });
  }

  async advanceClock(seconds) {
    await this.call("POST", "/clock", { kind: "advance", seconds });
  }

  /** Keeps all tables as they are. Returns an id for `restore`. */
  async snapshot() {
    return (await this.call("POST", "/snapshots")).id;
  }

  async restore(snapshotId) {
    await this.call("POST", `/snapshots/${snapshotId}/restore`);
  }

  /** Adds the tables and entities of lines of JSON. */
  async load(lines) {
    await this.call("POST", "/entities", lines);
  }

  /** All tables and entities as sorted text, without timestamps. */
  async dump() {
    return await this.call("GET", "/dump");
  }
}
