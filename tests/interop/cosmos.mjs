// Drives the flavor CosmosDb of our server with the official JavaScript client, which takes `localhost` for Cosmos DB.
//
// Usage: NODE_PATH=FOLDER node cosmos.mjs CONNECTION_STRING

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";

const { TableClient, TableServiceClient, odata } = createRequire(import.meta.url)(
  "@azure/data-tables",
);

const OPTIONS = { allowInsecureConnection: true, retryOptions: { maxRetries: 0 } };

const row = (rowKey, properties) => ({ partitionKey: "p", rowKey, ...properties });

async function fails(status, call) {
  const error = await call().then(
    (result) => assert.fail(`expected ${status}, got ${JSON.stringify(result)}`),
    (reason) => reason,
  );
  assert.equal(error.statusCode, status, error.message);
  return error;
}

const connectionString = process.argv[2];
const name = "javascript" + randomUUID().replaceAll("-", "");
const service = TableServiceClient.fromConnectionString(connectionString, OPTIONS);
const table = TableClient.fromConnectionString(connectionString, name, OPTIONS);
await service.createTable(name);

// Insert and read.
const { etag } = await table.createEntity(row("0", { n: 0 }));
await fails(409, () => table.createEntity(row("0")));
await fails(400, () => table.createEntity(row("")));
const read = await table.getEntity("p", "0");
assert.deepEqual([read.n, read.etag], [0, etag]);
await fails(404, () => table.getEntity("p", "none"));

// The ETag: the merge is a POST with X-HTTP-Method.
await table.updateEntity(row("0", { n: 1 }), "Merge", { etag });
await fails(412, () => table.updateEntity(row("0", { n: 2 }), "Merge", { etag }));

// A transaction of every kind of change.
const { status, subResponses } = await table.submitTransaction([
  ["create", row("1", { n: 1 })],
  ["upsert", row("2", { n: 2 }), "Merge"],
  ["upsert", row("3", { n: 3 }), "Replace"],
  ["update", row("0", { a: "a" }), "Merge"],
]);
assert.equal(status, 202);
assert.deepEqual(
  subResponses.map((response) => [response.status, Boolean(response.etag)]),
  Array(4).fill([204, true]),
);
await table.submitTransaction([["delete", row("3")]]);
const merged = await table.getEntity("p", "0");
assert.deepEqual([merged.n, merged.a], [1, "a"]);

// One that fails changes nothing, and names the change.
const error = await fails(409, () =>
  table.submitTransaction([
    ["create", row("4")],
    ["create", row("1")],
  ]),
);
assert.match(error.message, /^1:/);
await fails(404, () => table.getEntity("p", "4"));

// Queries and pages.
const found = [];
const filter = odata`PartitionKey eq ${"p"} and n ge ${1}`;
for await (const { rowKey } of table.listEntities({ queryOptions: { filter } })) {
  found.push(rowKey);
}
assert.deepEqual(found, ["0", "1", "2"]);
const pages = table.listEntities().byPage({ maxPageSize: 2 });
const { value: first } = await pages.next();
const rest = table
  .listEntities()
  .byPage({ maxPageSize: 2, continuationToken: first.continuationToken });
const { value: second } = await rest.next();
assert.deepEqual(
  [first, second].map((page) => page.map(({ rowKey }) => rowKey)),
  [["0", "1"], ["2"]],
);
await fails(501, () => service.getProperties());

await service.deleteTable(name);
console.log("ok: the JavaScript client and Cosmos DB");
