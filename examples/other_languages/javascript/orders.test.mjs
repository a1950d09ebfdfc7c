// Tests of a program that keeps orders in a table: with faults, a clock and snapshots, and without sleeps and mocks.
//
// npm install @azure/data-tables && node --test

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { after, afterEach, beforeEach, test } from "node:test";

import { TableServer } from "./testkit.mjs";

// `require` also finds a package that NODE_PATH names; usually, `import { … } from "@azure/data-tables"` does.
const { AzureNamedKeyCredential, AzureSASCredential, TableClient, generateTableSas, odata } =
  createRequire(import.meta.url)("@azure/data-tables");

const INSERT = { operations: ["InsertEntity"] };
const OPTIONS = { allowInsecureConnection: true };

/** The program under test. */
class Orders {
  static async open(connectionString) {
    const orders = new Orders();
    orders.table = TableClient.fromConnectionString(connectionString, "Orders", OPTIONS);
    await orders.table.createTable();
    return orders;
  }

  async place(customer, number, cents) {
    await this.table.createEntity({ partitionKey: customer, rowKey: number, cents });
  }

  /** As `place`, but an order that is stored already is no error if it is the same. */
  async placeOnce(customer, number, cents) {
    try {
      await this.place(customer, number, cents);
    } catch (error) {
      if (error.statusCode !== 409) throw error;
      const stored = await this.table.getEntity(customer, number);
      if (stored.cents !== cents) throw error;
    }
  }

  async total(customer) {
    let total = 0;
    for await (const order of this.all(odata`PartitionKey eq ${customer}`)) total += order.cents;
    return total;
  }

  all(filter) {
    return this.table.listEntities({ queryOptions: { filter } });
  }
}

const server = await TableServer.start();
let orders;
after(() => server.stop());
beforeEach(async () => {
  await server.reset();
  orders = await Orders.open(server.connectionString);
});
afterEach(async (context) => {
  for (const lint of await server.lints()) context.diagnostic(`${lint.kind}: ${lint.text}`);
});

const seen = async (operation) =>
  (await server.requests(operation)).map(({ status, attempt }) => [status, attempt]);

test("a busy service is tried again after the time that it names", async () => {
  const busy = { kind: "error", code: "ServerBusy", retryAfterSeconds: 1 };
  const fault = await server.inject(busy, { ...INSERT, times: 2 });
  await orders.place("ada", "1", 250);
  assert.equal(await server.hits(fault), 2);
  assert.deepEqual(await seen("InsertEntity"), [[503, 1], [503, 2], [204, 3]]);
  const times = (await server.requests("InsertEntity")).map(({ time }) => Date.parse(time));
  assert.ok(times[1] - times[0] >= 990 && times[2] - times[1] >= 990, `${times}`);
  assert.equal(await orders.total("ada"), 250);
});

test("an insert whose response is lost fails with a conflict with itself", async () => {
  await server.inject({ kind: "loseResponse" }, { ...INSERT, times: 1 });
  // The client tries again although the first insert may have been carried out, and gets a conflict with its own entity.
  await assert.rejects(orders.place("ada", "1", 250), (error) => {
    assert.equal(error.statusCode, 409);
    assert.equal(error.details.odataError.code, "EntityAlreadyExists");
    return true;
  });
  assert.deepEqual(await seen("InsertEntity"), [[204, 1], [409, 2]]);
  assert.equal(await orders.total("ada"), 250);
});

test("an order is placed once although the response is lost", async () => {
  await server.inject({ kind: "loseResponse" }, { ...INSERT, times: 1 });
  await orders.placeOnce("ada", "1", 250);
  const expected = "Orders\nOrders(PartitionKey='ada',RowKey='1')\n  cents = 250\n";
  assert.equal(await server.dump(), expected);
});

test("a truncated page is an error", async () => {
  await orders.place("ada", "1", 250);
  await server.inject({ kind: "truncate", bytes: 20 }, { operations: ["QueryEntities"], times: 1 });
  // The client does not read it again: it retries only requests without a head of a response.
  await assert.rejects(orders.total("ada"), { name: "RestError", code: "PARSE_ERROR" });
  assert.deepEqual(await seen("QueryEntities"), [[200, 1]]);
  assert.equal(await orders.total("ada"), 250);
});

test("a corrupted page is an error", async () => {
  await orders.place("ada", "1", 250);
  await server.inject({ kind: "corrupt" }, { operations: ["QueryEntities"], times: 1 });
  await assert.rejects(orders.total("ada"), { name: "RestError", code: "PARSE_ERROR" });
  assert.deepEqual(await seen("QueryEntities"), [[200, 1]]);
});

test("orders have the time of the server", async () => {
  await server.setClock("2124-02-29T23:59:59Z");
  await orders.place("ada", "1", 250);
  await server.advanceClock(3600);
  await orders.place("ada", "2", 250);
  const times = [];
  for await (const { timestamp } of orders.all()) times.push(timestamp.slice(0, 19));
  assert.deepEqual(times, ["2124-02-29T23:59:59", "2124-03-01T00:59:59"]);
});

test("a signature expires", async () => {
  const [, name, key] = /AccountName=([^;]+);AccountKey=([^;]+)/.exec(server.connectionString);
  const day = 24 * 3600;
  const expiresOn = new Date(Date.now() + 30 * day * 1000);
  const credential = new AzureNamedKeyCredential(name, key);
  const sas = generateTableSas("Orders", credential, { permissions: { query: true }, expiresOn });
  const reader = new TableClient(server.endpoint, "Orders", new AzureSASCredential(sas), OPTIONS);
  await server.advanceClock(29 * day);
  assert.equal((await reader.listEntities().next()).done, true);
  await server.advanceClock(2 * day);
  await assert.rejects(reader.listEntities().next(), { statusCode: 403 });
});

test("a snapshot is restored", async () => {
  await server.load('{"table":"Orders","entity":{"PartitionKey":"ada","RowKey":"0","cents":100}}');
  const snapshot = await server.snapshot();
  for (const number of ["1", "2"]) {
    await orders.place("ada", number, 250);
    assert.equal(await orders.total("ada"), 350);
    await server.restore(snapshot);
  }
  assert.equal(await orders.total("ada"), 100);
});

test("requests beyond the rate are refused", async () => {
  await server.setClock("2124-02-29T23:59:59Z");
  await server.throttle({ perPartition: 1 });
  await orders.place("ada", "1", 250);
  const impatient = { ...OPTIONS, retryOptions: { maxRetries: 0 } };
  const table = TableClient.fromConnectionString(server.connectionString, "Orders", impatient);
  const order = { partitionKey: "ada", rowKey: "2" };
  await assert.rejects(table.createEntity(order), { statusCode: 503 });
  await server.advanceClock(1);
  await table.createEntity(order);
});

test("a scan is reported and a partition is not", async () => {
  await orders.place("ada", "1", 250);
  await orders.total("ada");
  assert.deepEqual(await server.lints(), []);
  await orders.all("cents gt 100").next();
  const [scan, ...others] = await server.lints();
  assert.deepEqual([scan.kind, scan.table, others], ["Scan", "Orders", []]);
  assert.match(scan.text, /Restrict the query to a partition/);
});

test("a wrong rule is refused by name", async () => {
  const wrong = server.inject({ kind: "loseResponse", times: 1 });
  await assert.rejects(wrong, /fault: unknown field `times`/);
});
