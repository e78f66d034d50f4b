"""svc with a hook in JavaScript that sets a field on create, as pocketbase_hook and parse_hook have; compare its create with target svc."""
import importlib.util, pathlib
_s = importlib.util.spec_from_file_location("svc", pathlib.Path(__file__).resolve().parent / "svc.py")
_svc = importlib.util.module_from_spec(_s); _s.loader.exec_module(_svc)
globals().update({k: v for k, v in vars(_svc).items() if not k.startswith("__")})
NAME = "svc_hook"; CONFIG = _svc.CONFIG + "; hook post.bind sets lang"
_JS = 'module.exports = (ctx) => {\n  ctx.data.lang = "hook-" + ctx.data.title.length;\n};\n'
def init(ctx):
    _svc.init(ctx)
    p = ctx.root / "projects" / "bench"
    (p / "lang.js").write_text(_JS)
    with (p / "articles.yaml").open("a") as f: f.write("hooks: { post: { bind: { type: javascript, file: lang.js } } }\n")
OPS = {"create": dict(_svc.OPS["create"], expect='"hook-')}
