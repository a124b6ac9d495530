// An application on ioredis while the cluster changes size: each worker owns keys, writes growing versions and
// counters through one of the proxies, and reads them back through the other. Ends when standard input closes.
// Prints what it saw as JSON; `bad` lists answers that no correct cache gives.
import Redis from "ioredis";

const ports = process.argv.slice(2).map(Number);
const clients = ports.map((port) => new Redis({ port, host: "127.0.0.1", maxRetriesPerRequest: null }));
let ended = false;
process.stdin.on("end", () => { ended = true; }).resume();

const bad = [];
let operations = 0, errors = 0;

async function attempt(operation) {
  operations += 1;
  try {
    return await operation();
  } catch (error) {
    errors += 1;
    bad.push(`error: ${error.message}`);
    return undefined;
  }
}

async function worker(id) {
  const writer = clients[id % clients.length], reader = clients[(id + 1) % clients.length];
  const key = `app:${id}`, counter = `count:${id}`, hash = `hash:${id}`, gone = `gone:${id}`;
  for (let version = 1; !ended; version += 1) {
    await attempt(() => writer.set(key, version));
    const seen = await attempt(() => reader.get(key));
    if (seen !== String(version)) bad.push(`${key}: wrote ${version}, read ${seen}`);
    const count = await attempt(() => writer.incr(counter));
    if (count !== version) bad.push(`${counter}: increment ${version} answered ${count}`);
    await attempt(() => writer.hset(hash, "f", version, "g", -version));
    const fields = await attempt(() => reader.hgetall(hash));
    if (fields?.f !== String(version) || fields?.g !== String(-version)) bad.push(`${hash}: ${JSON.stringify(fields)}`);
    await attempt(() => writer.set(gone, version));
    await attempt(() => reader.del(gone));
    if (await attempt(() => writer.exists(gone))) bad.push(`${gone}: deleted, and there again`);
    const many = await attempt(() => reader.mget(key, counter, gone));
    if (JSON.stringify(many) !== JSON.stringify([String(version), String(version), null])) {
      bad.push(`mget: ${JSON.stringify(many)} in round ${version}`);
    }
    const piped = await attempt(() => writer.pipeline().set(key, `${version}a`).get(key).set(key, version).get(key).exec());
    const values = piped?.map(([error, value]) => error?.message ?? value);
    if (values?.[1] !== `${version}a` || values?.[3] !== String(version)) bad.push(`pipeline: ${JSON.stringify(values)}`);
  }
}

await Promise.all(Array.from({ length: 16 }, (_, id) => worker(id)));
console.log(JSON.stringify({ operations, errors, bad: bad.slice(0, 20) }));
for (const client of clients) client.disconnect();
