#!/bin/sh
# The files that packages install beside the binaries: completions and manual pages of svcctl, laid out as below /usr/share, into bin/share.
set -eu
cd "$(dirname "$0")/.."
unset GOOS GOARCH CC # of a cross build: this runs here
rm -rf bin/share
mkdir -p bin/share/bash-completion/completions bin/share/zsh/site-functions bin/share/fish/vendor_completions.d bin/share/man/man1
CGO_ENABLED=0 ${GO:-go} build -o bin/share/svcctl ./cmd/svcctl
ctl() { SVCCTL_CONFIG=/dev/null bin/share/svcctl "$@"; }
ctl completion bash >bin/share/bash-completion/completions/svcctl
ctl completion zsh >bin/share/zsh/site-functions/_svcctl
ctl completion fish >bin/share/fish/vendor_completions.d/svcctl.fish
ctl man --dir bin/share/man/man1
gzip -9n bin/share/man/man1/*.1
rm bin/share/svcctl
