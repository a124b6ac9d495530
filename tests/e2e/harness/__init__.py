"""Real processes for the end-to-end tests: redis-servers, registry, controller, proxies, ringshift check."""
