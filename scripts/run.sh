#!/bin/sh
# make run: serves the sample projects with the embedded store under ./data, and says where things are. The first start
# registers the projects, loads their content through the API and makes an administrator; later ones go on with that.
# API_PORT takes another port than 8080, DATA_DIR another directory than ./data, STORE_URI another store, STORE_MONGO_LISTEN
# opens the MongoDB endpoint; the other settings are in docs/settings.md.
set -u
cd "$(dirname "$0")/.." || exit 1

data=${DATA_DIR:-data}
port=${API_PORT:-8080}
url=http://127.0.0.1:$port
# A host for each sample, as a site has one: browsers take every name that ends in .localhost for this machine.
export API_FRONTS="${API_FRONTS-blog.localhost=blog,shop.localhost=shop}"
export API_PORT="$port" DATA_DIR="$data" PROJECTS_DIR=projects
unset ADMIN_TOKEN ADMIN_TOKEN_FILE # the token is the one in the data directory
for name in $(env | sed -n 's/^\(SVCCTL_[A-Z_]*\)=.*/\1/p'); do unset "$name"; done
export SVCCTL_CONFIG="$data/svcctl.yaml" # nothing of yours is read or changed

say() { printf '%s\n' "$*"; }
fail() {
	say "make run: $*" >&2
	exit 1
}
ctl() { bin/svcctl --color=never -q --context local "$@"; }
# asks is without a credential: one of an earlier login would be refused.
asks() { SVCCTL_CONFIG=/dev/null bin/svcctl -s "$url" --request-timeout 3s api GET "$1" >/dev/null 2>&1; }

case $port in
*[!0-9]* | '') fail "API_PORT must be a number, such as 8081" ;;
esac
umask 077
mkdir -p "$data" || exit 1
asks /healthz
if [ $? -ne 7 ]; then # 7: nobody answers there
	fail "port $port is taken. Stop what listens there, or choose another one: API_PORT=8081 make run"
fi

pid= stopping=
running() { [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null; }
# Ctrl-C reaches svcd as it reaches this script; only a signal to the script alone has to be passed on. A second one
# would make svcd leave everything where it is.
interrupted() {
	[ -z "$stopping" ] || return
	stopping=1
	sleep 0.3
	if asks /readyz; then kill -TERM "$pid" 2>/dev/null; fi
}
terminated() {
	[ -n "$stopping" ] || { stopping=1 && kill -TERM "$pid" 2>/dev/null; }
}
finish() {
	while running; do wait "$pid"; done
	wait "$pid" 2>/dev/null
}
trap interrupted INT
trap terminated TERM HUP
trap 'running && terminated; finish' EXIT

bin/svcd serve &
pid=$!
tries=0
until asks /readyz; do
	if ! running; then
		wait "$pid"
		code=$?
		pid=
		[ -n "$stopping" ] && exit 0
		fail "svcd did not start (exit code $code); what it says is above"
	fi
	tries=$((tries + 1))
	[ "$tries" -lt 300 ] || fail "svcd is not ready after 30 seconds"
	sleep 0.1
done
bin/svcctl -q config set-context local --use --server "$url" --admin-token-file "$data/admin.token" >/dev/null || exit 1

# What was loaded is noted for each store, in a file for each file of records.
store=$(printf '%s' "${STORE_URI:-embedded}" | cksum | cut -d ' ' -f 1)
notes=$data/samples/$store

# import NAMESPACE FILE: 04-products.ndjson goes to products. Records that are there already, from a run that was
# interrupted, are no failure.
import() {
	note=$notes/$1-$(basename "$2" .ndjson)
	[ -e "$note" ] && return 0
	collection=$(basename "$2" .ndjson | cut -d - -f 2-)
	answer=$(ctl -o json doc import "$1" "$collection" -f "$2" --continue-on-error 2>"$data/import.log")
	code=$?
	others=$(printf '%s\n' "$answer" | grep '"code"' | grep -cv '"conflict\|"unique')
	case $code in
	0) ;;
	1 | 3) [ -n "$answer" ] && [ "$others" -eq 0 ] || code=9 ;;
	*) code=9 ;;
	esac
	if [ "$code" -eq 9 ]; then
		[ -n "$stopping" ] || cat "$data/import.log" >&2
		return 1
	fi
	rm -f "$data/import.log"
	mkdir -p "$notes" && : >"$note"
}

for project in blog shop; do
	if ! ctl project get "$project" >/dev/null 2>&1; then
		[ -n "$stopping" ] && exit 0
		rm -f "$notes/$project"-*
		ctl project register "$project" --name "$project" --description "A sample project" >/dev/null || fail "the project $project could not be registered"
		say "registered the project $project"
	fi
	loaded=
	for file in projects/"$project"/content/*.ndjson; do
		[ -e "$notes/$project-$(basename "$file" .ndjson)" ] || loaded=1
		import "$project" "$file" || { [ -n "$stopping" ] && exit 0; fail "the content of $project could not be loaded: $file"; }
	done
	[ -z "$loaded" ] || say "loaded the content of $project"
done

if [ ! -s "$data/admin.password" ]; then
	LC_ALL=C tr -dc 'A-HJ-NP-Za-km-z2-9' </dev/urandom | head -c 20 >"$data/admin.password"
	echo >>"$data/admin.password"
fi
if ! ctl -o name user list 2>/dev/null | grep -qx 'user/admin'; then
	[ -n "$stopping" ] && exit 0
	ctl user create admin --admin --password-file "$data/admin.password" >/dev/null || fail "the first user could not be made"
	say "made the administrator admin"
fi

[ -n "$stopping" ] || cat <<TEXT

svc serves the sample projects blog and shop. Ctrl-C stops it; the next make run goes on with the same data.

  URL             $url
  Admin token     $data/admin.token
  Administrator   admin, password in $data/admin.password
  Sites           blog.localhost:$port/api/…, shop.localhost:$port/api/…
  Projects        ./projects: edit a file and the change is served

Try, in another terminal and this directory:

  curl '$url/api/v1/_/blog/articles?limit=2&projection=teaser&pretty=true'
  curl -H "X-Admin-Token: \$(cat $data/admin.token)" '$url/api/v1/_/shop/orders?limit=1&pretty=true'

  export SVCCTL_CONFIG=$data/svcctl.yaml
  bin/svcctl project list
  bin/svcctl doc list blog articles --sort=-publishedAt --limit 5 --select title,status,publishedAt
  bin/svcctl project status blog

TEXT
[ -n "$stopping" ] || [ -z "${STORE_MONGO_LISTEN:-}" ] || cat <<TEXT
  mongosh "mongodb://admin:\$(cat $data/admin.token)@$STORE_MONGO_LISTEN/svc_blog?authSource=admin&replicaSet=svc"

TEXT
while running; do wait "$pid"; done
wait "$pid"
code=$?
pid=
trap - EXIT
[ -n "$stopping" ] && exit 0
[ "$code" -eq 0 ] || fail "svcd ended with exit code $code; what it says is above"
