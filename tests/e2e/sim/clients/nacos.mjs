// nacos.mjs HOST:PORT: registers two instances, beats, looks, takes one away and looks again; prints what it saw.
import { createRequire } from 'node:module';
const { NacosNamingClient } = createRequire(import.meta.url)('nacos-naming');

const quiet = { info() {}, warn() {}, debug() {}, error(...words) { console.error(...words); } };
const client = new NacosNamingClient({ logger: quiet, serverList: process.argv[2], namespace: 'public' });
await client.ready();
const instance = (port) => ({ ip: '10.0.0.1', port, metadata: { id: `cache-${port}` } });
await client.registerInstance('cache', instance(7001));
await client.registerInstance('cache', instance(7002));
const look = async () => (await client.getAllInstances('cache', 'DEFAULT_GROUP', '', false))
  .map((host) => `${host.ip}:${host.port}:${host.healthy}`).sort();
const both = await look();
await new Promise((resolve) => setTimeout(resolve, 11000)); // Until it beats.
await client.deregisterInstance('cache', instance(7002));
console.log(JSON.stringify({ both, one: await look() }));
process.exit(0);
