"""svc: the target file of this service for the side-by-side harness (bench.py), beside its targets/pocketbase.py.

Public rules, unique slug, an index on publishedAt, as there; the embedded store, which syncs every write to the disk.
The program is $SVC_BIN, else bin/svcd of this repository (make build). SVC_STORE_URI measures another store.
"""
import json, os, pathlib, shutil, subprocess, time
from urllib.parse import quote

NAME = "svc"; BASE = "http://127.0.0.1:8196"
CONFIG = "defaults: embedded store, fsync before every answer to a write; permissions public; unique index slug, index publishedAt"
HERE = pathlib.Path(__file__).resolve().parent
REPO = HERE.parent.parent
TOKEN = "bench-admin-token-of-no-worth-0000"
STORE = os.environ.get("SVC_STORE_URI", "")

def binp(ctx): return pathlib.Path(os.environ.get("SVC_BIN") or REPO / "bin" / "svcd")
def install(ctx): return binp(ctx)
def version(ctx): return subprocess.check_output([str(binp(ctx)), "version"], text=True).strip()
def procs(ctx):
    env = dict(API_PORT=8196, API_HOST="127.0.0.1", DATA_DIR=ctx.data, PROJECTS_DIR=ctx.root / "projects", ADMIN_TOKEN=TOKEN)
    if STORE: env["STORE_URI"] = STORE
    return [dict(name="svc", cmd=[binp(ctx), "serve"], env=env, ready="/readyz")]
def init(ctx):
    shutil.copytree(HERE.parent / "project", ctx.root / "projects" / "bench")
    with (ctx.root / "projects" / "bench" / "project.yaml").open("a") as f:
        f.write("snapshots: [{ name: bench, collectionDedup: true }]\n")
def setup(ctx):
    h = {"X-Admin-Token": TOKEN}
    p = ctx.http("POST", "/api/v1/project", dict(name="bench", configFile="bench", enabled=True), h)
    for _ in range(600):                                      # until the indexes are there
        st = ctx.http("GET", "/api/v1/project/%s/status" % p["id"], None, h)
        if any(c["type"] == "IndexesConverged" and c["status"] == "True" for c in st["conditions"]): return
        time.sleep(0.05)
    raise RuntimeError(json.dumps(st))
A = "/api/v1/_/bench/articles"
F = quote(json.dumps({"status": "published", "active": True}, separators=(",", ":")))
def create(ctx, c, b): return ctx.http("POST", "/api/v1/_/bench/" + c, b)["id"]
def body(a, ctx): return {**a, "author": ctx.state["authors"][a["author"]]}
def update_body(b, ctx): return b
WORD = quote('{"$or":[{"title":{"$regex":"') + "{word}" + quote('","$options":"i"}},{"body":{"$regex":"') + "{word}" + quote('","$options":"i"}}]}')
OPS = {
    "get": dict(path=A + "/{id}", expect='"slug"', min=2000),
    "list": dict(path=A + "?limit=20&sort=-publishedAt&filter=" + F, expect='"items"', min=40000),
    "list_total": dict(path=A + "?limit=20&count=true&sort=-publishedAt&filter=" + F, expect='"total"', min=40000),
    "search": dict(path=A + "?limit=20&filter=" + WORD, expect='"items"', min=40000),
    "expand": dict(path=A + "?limit=20&sort=-publishedAt&lookup=author&filter=" + F, expect='"bio"', min=40000),
    "create": dict(method="POST", path=A, expect='"id"', min=2000),
    "update": dict(method="PUT", path=A + "/{id}", expect='"id"', min=2000),
}
def items(j): return j["items"]
def one(j): return j
def view(x): return x
def author_of(x): return x["author"]
def total(j): return j["total"]
def count(ctx): return ctx.http("GET", A + "/_count")["count"]
def upload(ctx, data, fn, mime):
    b = "benchboundary"
    s, _, d = ctx.http.raw("POST", "/api/v1/_/bench/media", ('--%s\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\nContent-Type: %s\r\n\r\n' % (b, fn, mime)).encode()
        + data + ("\r\n--%s--\r\n" % b).encode(), {"Content-Type": "multipart/form-data; boundary=" + b})
    j = json.loads(d); assert s == 201, d[:300]
    return j["file"]["src"]
def thumb_url(u): return u + "?filter=thumb"
def backup(ctx, i):                                          # the stream of its events ends with the run
    s, _, d = ctx.http.raw("POST", "/api/v1/_/bench/_/admin/snapshots", {"profile": "bench"}, {"X-Admin-Token": TOKEN, "Accept": "text/event-stream"}, timeout=600)
    assert s == 200 and b"event: done" in d, d[-500:]
def extras(ctx, B):
    from targets import _extras as X
    X.thumbs(ctx, B); X.backups(ctx, B, ctx.root)
