// Writes, reads and copies entities with the official JavaScript client, as it is told.
//
// Usage: NODE_PATH=FOLDER node child.mjs CONNECTION_STRING
// where FOLDER is a node_modules that holds @azure/data-tables.
//
// A line of JSON on standard input is one request, a line on standard output its answer. A property is
// [name, EDM type, text]: a double is the 16 digits of its bits, bytes are in Base64, a null has neither
// type nor text. In the mode "plain" the values are those that a JavaScript program has of itself; in the
// mode "typed" each is an object with its type, and reading asks for such objects.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";

// The client is installed outside the sources: `require` finds it by NODE_PATH, `import` would not.
const { TableClient } = createRequire(import.meta.url)("@azure/data-tables");

const doubleOf = (text) => Buffer.from(text, "hex").readDoubleBE();

function textOf(double) {
  const bits = Buffer.alloc(8);
  bits.writeDoubleBE(double);
  return bits.toString("hex");
}

function plain(type, text) {
  switch (type) {
    case null:
      return null;
    case "Edm.Binary":
      return Uint8Array.from(Buffer.from(text, "base64"));
    case "Edm.Boolean":
      return text === "true";
    case "Edm.DateTime":
      return new Date(text);
    case "Edm.Double":
      return doubleOf(text);
    case "Edm.Guid":
      return { type: "Guid", value: text };
    case "Edm.Int32":
      return Number(text);
    case "Edm.Int64":
      return BigInt(text);
    case "Edm.String":
      return text;
    default:
      throw new Error(`no such type: ${type}`);
  }
}

function typed(type, text) {
  if (type === null) {
    return null;
  }
  let value = text;
  if (type === "Edm.Boolean") {
    value = text === "true";
  } else if (type === "Edm.Int32") {
    value = Number(text);
  } else if (type === "Edm.Double") {
    value = doubleOf(text);
    // As the client's documentation has it: JSON has no such numbers.
    value = Number.isFinite(value) ? value : String(value);
  }
  return { type: type.slice("Edm.".length), value };
}

function told(name, value) {
  switch (typeof value) {
    case "bigint":
      return [name, "Edm.Int64", String(value)];
    case "boolean":
      return [name, "Edm.Boolean", String(value)];
    case "number":
      // All that a program can ask of a number.
      return (value | 0) === value && !Object.is(value, -0)
        ? [name, "Edm.Int32", String(value)]
        : [name, "Edm.Double", textOf(value)];
    case "string":
      return [name, "Edm.String", value];
  }
  if (value instanceof Date) {
    return [name, "Edm.DateTime", value.toISOString()];
  }
  if (value instanceof Uint8Array) {
    return [name, "Edm.Binary", Buffer.from(value).toString("base64")];
  }
  if (value.type === "Double") {
    return [name, "Edm.Double", textOf(Number(value.value))];
  }
  return [name, `Edm.${value.type}`, String(value.value)];
}

async function answer(table, request) {
  if (request.do === "write") {
    const convert = request.mode === "typed" ? typed : plain;
    const entity = { partitionKey: "p", rowKey: request.row };
    for (const [name, type, text] of request.properties) {
      entity[name] = convert(type, text);
    }
    await table.createEntity(entity);
    return {};
  }
  const options = { disableTypeConversion: request.mode === "typed" };
  const read = await table.getEntity("p", request.row, options);
  const { partitionKey, rowKey, etag, timestamp, "odata.metadata": metadata, ...properties } = read;
  if (request.do === "read") {
    return { properties: Object.entries(properties).map(([name, value]) => told(name, value)) };
  }
  await table.createEntity({ ...properties, partitionKey, rowKey: request.to });
  return {};
}

const options = { allowInsecureConnection: true, retryOptions: { maxRetries: 0 } };
for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  let reply;
  try {
    const table = TableClient.fromConnectionString(process.argv[2], request.table, options);
    reply = await answer(table, request);
  } catch (error) {
    reply = error.statusCode
      ? { refused: [error.statusCode, error.details?.odataError?.code ?? null] }
      : { failed: String(error) };
  }
  process.stdout.write(`${JSON.stringify(reply)}\n`);
}
