// Ask a measurement server for one noisy weighted sum. This program needs a certificate and protos/measurement.proto.
//
//     node client.mjs HOST:PORT SERVER IDENTITY DATASET ROWS.csv [EPSILON]
//
// SERVER is the name in the server's certificate. IDENTITY is a folder with certificate.pem, key.pem and authority.pem.
// ROWS.csv has an id and numeric features on each line, below a header. The program prints one JSON document.
import grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { createHash, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const [address, server, identity, dataset, table, epsilon = "1"] = process.argv.slice(2);
const FRAC_BITS = 20, NORM_BOUND = 2 ** FRAC_BITS, BATCH = 4096; // a row has length 1 at most, in steps of 2^-20

const protos = fileURLToPath(new URL("../../protos", import.meta.url));
const definition = loadSync("measurement.proto", { includeDirs: [protos], keepCase: true, longs: Number, defaults: true });
const { Measurement } = grpc.loadPackageDefinition(definition).blindfit.v1;
const pem = (name) => readFileSync(join(identity, name));
const credentials = grpc.credentials.createSsl(pem("authority.pem"), pem("key.pem"), pem("certificate.pem"));
const client = new Measurement(address, credentials, { "grpc.ssl_target_name_override": server });

// Rows: clip each to length 1, then round toward zero. The last column is the constant 1.
const lines = readFileSync(table, "utf8").trim().split(/\r?\n/).map((line) => line.split(","));
const columns = [...lines[0].slice(1), "constant"];
const ids = lines.slice(1).map(([id]) => id.trim());
const weights = Buffer.alloc(4 * ids.length * columns.length);
lines.slice(1).forEach(([, ...texts], i) => {
  const row = [...texts.map(Number), 1];
  const scale = NORM_BOUND / Math.max(1, Math.hypot(...row));
  row.forEach((x, j) => weights.writeInt32LE(Math.trunc(x * scale), 4 * (i * columns.length + j)));
});

// The hash of the content: all ids, their lengths in characters, all weights as 32-bit integers.
const sha256 = (...parts) => parts.reduce((hash, part) => hash.update(part), createHash("sha256")).digest();
const lengths = Buffer.alloc(4 * ids.length);
ids.forEach((id, i) => lengths.writeUInt32LE([...id].length, 4 * i));
const content_sha256 = sha256(sha256(ids.join("")), sha256(lengths), sha256(weights));

client.Describe({ dataset }, (error, about) => {
  if (error) return fail(error);
  const call = client.Aggregate();
  call.on("error", fail);
  call.on("data", ({ opened, answer, kept }) => {
    if (opened?.send_rows) sendRows(call);
    if (answer) show(answer);
    if (kept) console.error("some rows did not count: their persons have more rows than may count");
  });
  call.write({ open: {
    protocol_version: "1", request_id: randomUUID(), dataset, snapshot: about.snapshot, content_sha256,
    n_rows: ids.length, n_columns: columns.length, frac_bits: FRAC_BITS, norm_bound: NORM_BOUND,
    max_rows_per_person: about.max_rows_per_person, epsilon: Number(epsilon), delta: 1e-6, mechanism: "analytic",
  } });
});

function sendRows(call) {
  for (let at = 0; at < ids.length; at += BATCH) {
    const part = weights.subarray(4 * at * columns.length, 4 * (at + BATCH) * columns.length);
    call.write({ rows: { ids: ids.slice(at, at + BATCH), weights: part, bits: 32 } });
  }
  call.write({ end: {} });
  call.end();
}

function show({ sums, noise_std, rows_kept, rows_scaled, receipt }) {
  const means = Object.fromEntries(columns.map((name, j) => [name, sums[j] / NORM_BOUND / rows_kept]));
  const kept = { statement: receipt.statement.toString(), signature: receipt.signature.toString("base64") };
  console.log(JSON.stringify({ means, noise_std: noise_std / NORM_BOUND / rows_kept, rows_kept, rows_scaled, receipt: kept }, null, 2));
}

function fail(error) {
  console.error(`${grpc.status[error.code]}: ${error.details}`);
  process.exitCode = 1;
}
