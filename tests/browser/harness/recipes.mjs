// Compiles a copied program with the libraries of this project, and runs it.

import { execFile } from "node:child_process";
import { copyFile, mkdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** What the program prints with this account. */
export async function runs(program, account) {
  const target = resolve(process.env.CARGO_TARGET_DIR ?? "target");
  const folder = join(target, "browser", "recipe");
  await mkdir(join(folder, "src"), { recursive: true });
  const path = resolve("tablesdk");
  const manifest = `[package]\nname = "recipe"\nversion = "0.0.0"\nedition = "2024"\n\n[dependencies]\nfutures = "0.3"\ntablesdk = { path = ${JSON.stringify(path)} }\ntokio = { version = "1", features = ["macros", "rt-multi-thread"] }\n\n[workspace]\n`;
  await writeFile(join(folder, "Cargo.toml"), manifest);
  await writeFile(join(folder, "src/main.rs"), program);
  // The versions that the project uses are in the registry's folder already.
  await copyFile("Cargo.lock", join(folder, "Cargo.lock"));
  const options = { env: { ...process.env, CARGO_TARGET_DIR: join(target, "browser", "recipe-target"), AZURE_STORAGE_CONNECTION_STRING: account } };
  const { stdout } = await run("cargo", ["run", "--quiet", "--offline", "--manifest-path", join(folder, "Cargo.toml")], options);
  return stdout;
}
