// All flows, in the order in which a person gets to know the page.
//
// TABLESDK_PROGRAMS is the folder of the built programs, TABLESDK_FLOWS=all selects all flows instead of the daily ones, TABLESDK_AZURITE
// is the program azurite-table, TABLESDK_PICTURES a folder for pictures of all screens.

import { readdirSync } from "node:fs";

for (const file of readdirSync(new URL("flows", import.meta.url)).sort()) await import(`./flows/${file}`);
