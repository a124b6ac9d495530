"""Fixtures of the end-to-end tests. Everything runs on loopback, on free ports, in a directory of the test's own, and
is gone when the test is; logs are shown when a test fails.

RINGSHIFT_BIN        the program under test (build/release/bin/ringshift)
RINGSHIFT_BIN_DEBUG  a build with the switches that break the protocol (build/debug/bin/ringshift)
RINGSHIFT_HISTORY    the one whose `check` judges histories (RINGSHIFT_BIN)
"""
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from harness import cluster as harness  # noqa: E402

CLIENTS = Path(__file__).parent / "clients"


def pytest_configure(config):
    for path in (harness.RINGSHIFT, harness.CHECKER):
        if not path.exists():
            raise pytest.UsageError(f"{path} is not built; build it, or name another by "
                                    "RINGSHIFT_BIN or RINGSHIFT_HISTORY")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        for cluster in getattr(item, "clusters", []):
            for name, text in cluster.logs():
                report.sections.append((f"log of {name}", text))


@pytest.fixture
def make_cluster(tmp_path, request):
    """Makes clusters; at the end each process must still be there, unless the test killed it, and stop cleanly."""
    request.node.clusters = made = []

    def make(**options):
        directory = tmp_path / f"cluster-{len(made) + 1}"
        directory.mkdir()
        # Known before it is complete, so that its logs show when it does not come up.
        cluster = harness.Cluster.__new__(harness.Cluster)
        cluster.members, cluster.proxies, cluster.registry, cluster.controller = [], [], None, None
        made.append(cluster)
        cluster.__init__(directory, **options)
        return cluster

    yield make
    faults = [fault for cluster in made for fault in cluster.stop()]
    assert not faults, faults


@pytest.fixture
def static(make_cluster):
    """Four members and two proxies by a spec file; no registry."""
    return make_cluster(members=4, proxies=2).start_static()


@pytest.fixture
def cluster(make_cluster):
    """Four members, registry, controller, two proxies."""
    return make_cluster(members=4, proxies=2).start()


@pytest.fixture(scope="session")
def node_clients():
    """The directory of the JavaScript clients, with their packages installed as the lock file says."""
    if not (CLIENTS / "node_modules" / ".package-lock.json").exists():
        done = subprocess.run(["npm", "ci", "--omit-lockfile-registry-resolved", "--no-audit", "--no-fund"], cwd=CLIENTS,
                              capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stdout + done.stderr
    return CLIENTS
