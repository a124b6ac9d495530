"""The admin port of every role: health, words, who may ask, and that a successor gets it."""
import re
import subprocess
import urllib.error
import urllib.request

from harness.cluster import FAILED, RINGSHIFT, run
from harness.process import Process, free_port, wait_until

PORT = ["--admin-listen", "127.0.0.1:0"]
SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def ask(url, method="GET", headers=None):
    request = urllib.request.Request(url, method=method, headers=headers or {})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def metrics(url):
    """Family -> (type, [(labels, value)]) of a page that promtool finds right."""
    status, page = ask(url + "/metrics")
    assert status == 200, page
    checked = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, text=True, check=False)
    assert checked.returncode == 0 and not checked.stderr, checked.stdout + checked.stderr
    families = {}
    for line in page.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            families[name] = kind, []
        elif not line.startswith("#"):
            name, labels, value = SAMPLE.match(line).groups()
            family = name if name in families else re.sub(r"_(bucket|sum|count)$", "", name)
            pairs = dict(LABEL.findall(labels or ""))
            families[family][1].append((name, pairs, float(value)))
    return families


def value(families, name, **labels):
    """Of the one sample that has these labels."""
    family = families.get(name) or families[re.sub(r"_(bucket|sum|count)$", "", name)]
    found = [v for n, pairs, v in family[1] if n == name and labels.items() <= pairs.items()]
    assert len(found) == 1, (name, labels, family)
    return found[0]


def start_serve(cluster, *options, spec=None, members=None):
    spec = spec or cluster.write_spec(members=members)
    serve = Process("serve", [RINGSHIFT, "serve", "--spec", spec, "--data", cluster.directory / "data", "--listen",
                              "127.0.0.1:0", "--registry-listen", "127.0.0.1:0", "--threads", "2", *PORT, *options],
                    cluster.directory)
    cluster.proxies.append(serve)
    serve.start().wait_ready()
    serve.admin = serve.admin_url()
    cluster.registry_url = re.search(r"ready: registry listening on (\S+)", serve.output()).group(1)
    serve.port = int(re.search(r"ready: proxy listening on \S+:(\d+)", serve.output()).group(1))
    return serve


def test_the_port_answers_in_words_and_to_this_machine_alone(make_cluster):
    cluster = make_cluster(members=1, proxies=0)
    serve = start_serve(cluster)
    assert ask(serve.admin + "/healthz") == (200, "ok\n")
    wait_until("ready", lambda: ask(serve.admin + "/readyz") == (200, "ready\n"))
    assert ask(serve.admin + "/metrics", "HEAD") == (200, "")
    status, text = ask(serve.admin + "/metricz")
    assert status == 404 and "/metricz" in text and "dashboard" in text
    status, text = ask(serve.admin + "/metrics", "DELETE")
    assert status == 405 and "GET, HEAD" in text
    assert ask(serve.admin + "/metrics", headers={"Host": "rebound.example"})[0] == 403
    assert ask(serve.admin + "/metrics", headers={"Origin": "http://evil.example"})[0] == 403

    # A second one on the same machine: the error names the flag, and 'none' does without.
    port = serve.admin.rsplit(":", 1)[1]
    second = ["serve", "--spec", cluster.write_spec(), "--data", cluster.directory / "second", "--listen", "127.0.0.1:0",
              "--registry-listen", "127.0.0.1:0", "--admin-listen"]
    refused = run(*second, f"127.0.0.1:{port}")
    assert refused.returncode == FAILED and "--admin-listen" in refused.stderr and "in use" in refused.stderr
    refused = run(*second, "0.0.0.0:0")
    assert refused.returncode == FAILED and "loopback" in refused.stderr
    refused = run(*second, "nonsense")
    assert refused.returncode != 0 and "--admin-listen" in refused.stderr and "nonsense" in refused.stderr
    without = Process("without", [RINGSHIFT, *second, "none"], cluster.directory)
    cluster.proxies.append(without)
    without.start().wait_ready()
    wait_until("the proxy is announced", lambda: "ready: proxy" in without.output())
    assert "ready: admin" not in without.output()


def test_a_controller_without_a_registry_is_healthy_and_not_ready(make_cluster):
    cluster = make_cluster(members=1, proxies=0)
    cluster.controller_options = PORT
    cluster.registry_url = f"http://127.0.0.1:{free_port()}"
    cluster.start_controller()
    url = cluster.controller.admin_url()
    assert ask(url + "/healthz")[0] == 200
    status, why = ask(url + "/readyz")
    assert status == 503 and "registry" in why
    assert value(metrics(url), "ringshift_controller_leading") == 0


def test_a_successor_gets_the_admin_port(make_cluster):
    """`--handover` with one command line twice: the second one takes the port as soon as the first one drains."""
    cluster = make_cluster(members=1, proxies=0)
    spec, port, admin = cluster.write_spec(), free_port(), free_port()
    lives = []
    for number in (1, 2):
        life = Process(f"life-{number}", [RINGSHIFT, "proxy", "--spec", spec, "--listen", f"127.0.0.1:{port}", "--handover",
                                          cluster.directory / "handover.sock", "--admin-listen", f"127.0.0.1:{admin}"],
                       cluster.directory)
        cluster.proxies.append(life)
        lives.append(life)
        life.start().wait_ready()
        assert life.admin_url(30) == f"http://127.0.0.1:{admin}"
    lives[0].expected_dead = True
    assert lives[0].popen.wait(40) == 0, lives[0].tail()
    assert ask(f"http://127.0.0.1:{admin}/readyz")[0] == 200
