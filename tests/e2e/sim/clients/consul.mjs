// consul.mjs PORT: registers a service with a TTL check, passes it, and watches it by blocking queries while it changes.
import Consul from 'consul';

const consul = new Consul({ host: '127.0.0.1', port: Number(process.argv[2]) });
await consul.agent.service.register({ id: 'cache-1', name: 'cache', address: '10.0.0.1', port: 6379,
  meta: { zone: 'a' }, check: { ttl: '15s' } });
const states = [];
const watch = consul.watch({ method: consul.health.service, options: { service: 'cache', wait: '5s' } });
const seen = new Promise((resolve, reject) => {
  watch.on('error', reject);
  watch.on('change', (entries) => {
    const checks = entries[0].Checks.filter((check) => check.CheckID === 'service:cache-1');
    states.push(checks[0].Status);
    if (states.at(-1) === 'critical') consul.agent.check.pass({ id: 'service:cache-1' }).catch(reject);
    if (states.at(-1) === 'passing') resolve();
  });
});
await seen;
watch.end();
await consul.agent.service.deregister('cache-1');
console.log(JSON.stringify({ states, left: (await consul.health.service('cache')).length }));
process.exit(0);
