"""Simulators of servers that cannot be had from Debian: Consul, Nacos, the Kubernetes API. Written from their published
API, strict about what they are asked, with switches for the faults that the real ones show. test_60_discovery_sources.py
uses them, and checks them against clients that others wrote."""
