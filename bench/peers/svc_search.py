"""svc with a text search over title and body, as q asks for it; compare its search with that of the targets that filter by patterns,
and its create with target svc."""
import importlib.util, pathlib
_s = importlib.util.spec_from_file_location("svc", pathlib.Path(__file__).resolve().parent / "svc.py")
_svc = importlib.util.module_from_spec(_s); _s.loader.exec_module(_svc)
globals().update({k: v for k, v in vars(_svc).items() if not k.startswith("__")})
NAME = "svc_search"; CONFIG = _svc.CONFIG + "; text search over title and body"
def init(ctx):
    _svc.init(ctx)
    with (ctx.root / "projects" / "bench" / "articles.yaml").open("a") as f:
        f.write("search: [{ name: words, mode: text, fields: [title, body] }]\n")
OPS = {"search": dict(path=A + "?limit=20&q={word}", expect='"_score"', min=40000), **{k: _svc.OPS[k] for k in ("get", "list", "create", "update")}}
